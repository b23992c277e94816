package storagefence

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// maxReply limits the size of a reply other than a content: more than all metadata of an object.
const maxReply = 256 << 10

func (b *Bucket) stat(ctx context.Context, object string) (version, error) {
	body, err := b.get(ctx, object, url.Values{"fields": {"generation,metageneration,metadata"}}, maxReply)
	if missing(err) {
		return version{}, nil
	}
	if err != nil {
		return version{}, err
	}
	return parse(body)
}

func (b *Bucket) download(ctx context.Context, object string, g Generation) ([]byte, error) {
	content, err := b.get(ctx, object, url.Values{"alt": {"media"}, "ifGenerationMatch": {g.String()}}, b.c.MaxSize)
	if missing(err) { // it existed a moment ago
		return nil, errOvertaken
	}
	if errors.Is(err, errTooLarge) {
		return nil, invalid("content", "the content of %[2]q is larger than %[1]d bytes", b.c.MaxSize, object)
	}
	return content, err
}

func (b *Bucket) get(ctx context.Context, object string, query url.Values, limit int64) ([]byte, error) {
	path := "/storage/v1/b/" + b.c.Bucket + "/o/" + url.PathEscape(object)
	return b.do(ctx, http.MethodGet, path, query, "", nil, limit)
}

// upload replaces the version that was found, if it is still the current one, and returns the new
// generation.
func (b *Bucket) upload(ctx context.Context, w *write, found version) (Generation, error) {
	contentType, body, err := b.related(w)
	if err != nil {
		return 0, err
	}
	query := url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {found.Generation.String()}, "fields": {"generation,metageneration"}}
	if found.Generation != 0 { // the mark can be changed without the content
		query.Set("ifMetagenerationMatch", strconv.FormatInt(found.Metageneration, 10))
	}
	reply, err := b.do(ctx, http.MethodPost, "/upload/storage/v1/b/"+b.c.Bucket+"/o", query, contentType, body, maxReply)
	if err != nil {
		return 0, err
	}
	made, err := parse(reply)
	return made.Generation, err
}

// related returns the body of an upload, and its type: the object's metadata and its content. The
// checksum detects damage.
func (b *Bucket) related(w *write) (contentType string, _ []byte, err error) {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(w.content, crc32.MakeTable(crc32.Castagnoli)))
	resource, err := json.Marshal(map[string]any{
		"name": w.object, "contentType": b.c.ContentType, "crc32c": base64.StdEncoding.EncodeToString(sum[:]), "metadata": w.metadata(),
	})
	if err != nil {
		return "", nil, err
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for _, part := range []struct {
		contentType string
		data        []byte
	}{{"application/json; charset=UTF-8", resource}, {b.c.ContentType, w.content}} {
		out, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}})
		if err == nil {
			_, err = out.Write(part.data)
		}
		if err != nil {
			return "", nil, err
		}
	}
	err = parts.Close()
	return "multipart/related; boundary=" + parts.Boundary(), body.Bytes(), err
}

// do sends one request and returns the body of its reply, if it is a success.
func (b *Bucket) do(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.c.Endpoint+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := b.c.Client.Do(request)
	if err != nil {
		return nil, &lostError{err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, newReplyError(response)
	}
	reply, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, &lostError{err}
	}
	if int64(len(reply)) > limit {
		return nil, errTooLarge
	}
	return reply, nil
}

// parse reads a version. An incomplete one is refused.
func parse(body []byte) (version, error) {
	var v version
	if err := json.Unmarshal(body, &v); err != nil {
		return version{}, &lostError{fmt.Errorf("a reply that is not from Cloud Storage: %w", err)}
	}
	if v.Generation < 1 || v.Metageneration < 1 {
		return version{}, &lostError{errors.New("a reply that is not from Cloud Storage: it has no generation")}
	}
	return v, nil
}

// String returns the generation in the form of a request.
func (g Generation) String() string { return strconv.FormatInt(int64(g), 10) }

// missing reports whether the object does not exist. A missing bucket also has status 404.
func missing(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply) && reply.Status == http.StatusNotFound && !strings.Contains(reply.Message, "bucket does not exist")
}
