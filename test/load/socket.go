package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"regent/leadership/wire"
)

// socket is a connection on which requests go out that were written beforehand, one at a time: ten
// thousand of them need less memory than as many clients of net/http.
type socket struct {
	net.Conn
	in *bufio.Reader
}

// connect connects to the server, from a local address or "" for any.
func connect(server, from string, buffer int) (socket, error) {
	d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", server)
	if err != nil {
		return socket{}, err
	}
	return socket{conn, bufio.NewReaderSize(conn, buffer)}, nil
}

// post writes a request with a JSON body, to be sent any number of times.
func post(server, path string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, server, wire.ContentType, len(body), body)
}

// receive reads the answer to what was sent.
func (s socket) receive() (status int, body []byte, err error) {
	answer, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
