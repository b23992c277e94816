package main

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// member is etcd: a cluster of one, with its defaults but for where it listens and how much it says. It ends with the standard input.
func member(ctx context.Context, dir string) error {
	c := embed.NewConfig()
	c.Dir = dir
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	log, err := quiet.Build()
	if err != nil {
		return err
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	}
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Info(serving, "address", e.Clients[0].Addr().String())
	io.Copy(io.Discard, os.Stdin)
	return nil
}
