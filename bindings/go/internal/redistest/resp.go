package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ask sends one command over a connection of its own.
func (s *Server) ask(words ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.port), Patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Patience))
	fmt.Fprintf(conn, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(word), word)
	}
	return read(bufio.NewReader(conn))
}

func read(from *bufio.Reader) (string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return "", errors.New(rest)
	case '$':
		return readBulk(from, rest)
	case '*':
		return readArray(from, rest)
	}
	return rest, nil
}

func readBulk(from *bufio.Reader, length string) (string, error) {
	size, err := strconv.Atoi(length)
	if err != nil || size < 0 {
		return "", err
	}
	text := make([]byte, size+2)
	_, err = io.ReadFull(from, text)
	return string(text[:size]), err
}

func readArray(from *bufio.Reader, length string) (string, error) {
	count, err := strconv.Atoi(length)
	if err != nil {
		return "", err
	}
	var elements []string
	for i := 0; i < count; i++ {
		element, err := read(from)
		if err != nil {
			return "", err
		}
		elements = append(elements, element)
	}
	return strings.Join(elements, "\n"), nil
}
