package main

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Messages are built and read by field number; the numbers are those of proto/grantty/v1.

type message []byte

func (m message) text(field protowire.Number, value string) message {
	if value == "" {
		return m
	}
	return m.bytes(field, []byte(value))
}

func (m message) bytes(field protowire.Number, value []byte) message {
	m = protowire.AppendTag(m, field, protowire.BytesType)
	return protowire.AppendBytes(m, value)
}

func (m message) number(field protowire.Number, value uint64) message {
	m = protowire.AppendTag(m, field, protowire.VarintType)
	return protowire.AppendVarint(m, value)
}

func ref(owner, id string) message { return message(nil).text(1, owner).text(2, id) }

// The bytes of the first field of that number; nil when it is absent.
func field(data []byte, wanted protowire.Number) []byte {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		data = data[n:]
		if number == wanted && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			return value
		}
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return nil
		}
		data = data[n:]
	}
	return nil
}

func number(data []byte, wanted protowire.Number) uint64 {
	for len(data) > 0 {
		tag, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0
		}
		data = data[n:]
		if tag == wanted && kind == protowire.VarintType {
			value, _ := protowire.ConsumeVarint(data)
			return value
		}
		n = protowire.ConsumeFieldValue(tag, kind, data)
		if n < 0 {
			return 0
		}
		data = data[n:]
	}
	return 0
}

func countOf(data []byte, wanted protowire.Number) int {
	count := 0
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return count
		}
		data = data[n:]
		if number == wanted {
			count++
		}
		n = protowire.ConsumeFieldValue(number, kind, data)
		if n < 0 {
			return count
		}
		data = data[n:]
	}
	return count
}

// Arms of WatchResponse and AttachResponse.
const (
	armStarted = 1
	armOutput  = 2
	armExited  = 4
)

// What an event's first field is, which is its arm, and that arm's bytes.
func arm(event []byte) (protowire.Number, []byte) {
	number, kind, n := protowire.ConsumeTag(event)
	if n < 0 || kind != protowire.BytesType {
		return 0, nil
	}
	value, _ := protowire.ConsumeBytes(event[n:])
	return number, value
}

// Passes the bytes of messages through.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	switch bytes := v.(type) {
	case message:
		return bytes, nil
	default:
		return nil, fmt.Errorf("%T is not the bytes of a message", v)
	}
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

func (rawCodec) Name() string { return "proto" }
