package kubernetes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// client-go sends protobuf by default: the four bytes of magic, and then a message Unknown whose
// field raw has the object. This file reads the fields of the object that are needed.

var magic = []byte("k8s\x00")

var errProtobuf = errors.New("the body is not an object in protobuf as Kubernetes writes it")

// fields calls do for each field of a message, with its bytes or its integer value.
func fields(message []byte, do func(field protowire.Number, text []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		var text []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		if kind != protowire.BytesType && kind != protowire.VarintType {
			continue
		}
		if err := do(field, text, number); err != nil {
			return err
		}
	}
	return nil
}

// texts reads string fields.
func texts(message []byte, to map[protowire.Number]*string) error {
	return fields(message, func(field protowire.Number, text []byte, _ uint64) error {
		if into := to[field]; into != nil {
			*into = string(text)
		}
		return nil
	})
}

// unwrap returns the object in a body, its version and its kind.
func unwrap(body []byte) (version, kind string, raw []byte, err error) {
	message, ok := bytes.CutPrefix(body, magic)
	if !ok {
		return "", "", nil, errProtobuf
	}
	err = fields(message, func(field protowire.Number, text []byte, _ uint64) error {
		switch field {
		case 1: // TypeMeta
			return texts(text, map[protowire.Number]*string{1: &version, 2: &kind})
		case 2:
			raw = text
		case 3:
			if len(text) > 0 {
				return fmt.Errorf("%w: its content is encoded as %q", errProtobuf, cut(string(text)))
			}
		}
		return nil
	})
	return version, kind, raw, err
}

func protobufLease(body []byte) (l lease, err error) {
	version, kind, raw, err := unwrap(body)
	if err != nil {
		return l, err
	}
	l.Kind, l.APIVersion = kind, version
	err = fields(raw, func(field protowire.Number, text []byte, _ uint64) error {
		switch field {
		case 1:
			return l.Metadata.protobuf(text)
		case 2:
			return l.Spec.protobuf(text)
		}
		return nil
	})
	return l, err
}

func (m *meta) protobuf(message []byte) error {
	err := texts(message, map[protowire.Number]*string{1: &m.Name, 2: &m.GenerateName, 3: &m.Namespace, 5: &m.UID, 6: &m.ResourceVersion})
	return cmp.Or(err, fields(message, func(field protowire.Number, text []byte, _ uint64) error {
		if !utf8.Valid(text) && (field <= 6 || field == 14) {
			return errProtobuf
		}
		switch field {
		case 11:
			return entry(&m.Labels, text)
		case 12:
			return entry(&m.Annotations, text)
		case 13:
			m.OwnerReferences = append(m.OwnerReferences, struct{}{})
		case 14:
			m.Finalizers = append(m.Finalizers, string(text))
		}
		return nil
	}))
}

// entry adds an entry to a map.
func entry(m *map[string]string, message []byte) error {
	var name, value string
	err := texts(message, map[protowire.Number]*string{1: &name, 2: &value})
	if err != nil || !utf8.ValidString(name) || !utf8.ValidString(value) {
		return errProtobuf
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = value
	return nil
}

func (s *spec) protobuf(message []byte) error {
	return fields(message, func(field protowire.Number, text []byte, number uint64) (err error) {
		if !utf8.Valid(text) && (field == 1 || field == 6 || field == 7) {
			return errProtobuf
		}
		switch field {
		case 1:
			s.HolderIdentity = new(string(text))
		case 2:
			s.LeaseDurationSeconds = new(int32(number))
		case 3:
			s.AcquireTime, err = instant(text)
		case 4:
			s.RenewTime, err = instant(text)
		case 5:
			s.LeaseTransitions = new(int64(int32(number)))
		case 6:
			s.Strategy = new(string(text))
		case 7:
			s.PreferredHolder = new(string(text))
		}
		return err
	})
}

func instant(message []byte) (*microTime, error) {
	var seconds, nanos int64
	err := fields(message, func(field protowire.Number, _ []byte, number uint64) error {
		switch field {
		case 1:
			seconds = int64(number)
		case 2:
			nanos = int64(int32(number))
		}
		return nil
	})
	return &microTime{time.Unix(seconds, nanos)}, err
}

// protobufOptions reads DeleteOptions.
func protobufOptions(body []byte) (o deleteOptions, err error) {
	_, kind, raw, err := unwrap(body)
	if o.Kind = kind; err != nil || kind != "" && kind != "DeleteOptions" {
		return o, err // for the caller to refuse
	}
	err = fields(raw, func(field protowire.Number, text []byte, _ uint64) error {
		switch field {
		case 2:
			return texts(text, map[protowire.Number]*string{1: &o.Preconditions.UID, 2: &o.Preconditions.ResourceVersion})
		case 5:
			o.DryRun = append(o.DryRun, string(text))
		}
		return nil
	})
	return o, err
}
