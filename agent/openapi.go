package agent

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/status"
)

// object is a part of an OpenAPI document (OpenAPI 3.0.3).
type object = map[string]any

// OpenAPI is the document of what the agent answers, in the latest version: made
// from the same table and the same types.
func OpenAPI() ([]byte, error) {
	d := document{schemas: object{}}
	paths := object{}
	for _, e := range endpoints() {
		if e.path == pagePath {
			continue // it is for people
		}
		methods, ok := paths[e.path].(object)
		if !ok {
			methods = object{}
			paths[e.path] = methods
		}
		methods[strings.ToLower(e.method)] = d.operation(e)
	}
	return json.MarshalIndent(object{
		"openapi":    "3.0.3",
		"info":       object{"title": "sledctl agent", "version": api.Latest().String(), "description": "VMs as Oxide's sled agent has them, and what sledctl has beyond it."},
		"paths":      paths,
		"components": object{"schemas": d.schemas},
	}, "", "  ")
}

// document is one in the making.
type document struct{ schemas object }

func (d document) operation(e endpoint) object {
	o := object{"operationId": e.id, "summary": e.summary, "parameters": parameters(e)}
	if !e.open {
		o["description"] = "Since version " + e.since.String() + "."
	}
	if e.body != nil {
		o["requestBody"] = object{"required": true, "content": jsonOf(d.schema(reflect.TypeOf(e.body)))}
	}
	failed := object{"description": "It was not done.", "content": jsonOf(d.schema(reflect.TypeFor[dropshot.Body]()))}
	answers := object{"4XX": failed, "5XX": failed}
	switch {
	case e.file != "":
		answers["200"] = object{"description": "The file.", "content": object{e.file: object{"schema": object{"type": "string", "format": "binary"}}}}
	case e.stream != nil && e.reply == nil:
		answers["200"] = object{"description": "A page of text.", "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	case e.stream != nil:
		answers["200"] = object{"description": "A stream of events, each with such data.", "content": object{"text/event-stream": object{"schema": d.schema(reflect.TypeOf(e.reply))}}}
	case e.reply != nil:
		answers["200"] = object{"description": "Done.", "content": jsonOf(d.schema(reflect.TypeOf(e.reply)))}
	case e.serve != nil && e.path == documentPath:
		answers["200"] = object{"description": "This document.", "content": jsonOf(object{"type": "object"})}
	default:
		answers["204"] = object{"description": "Done."}
	}
	o["responses"] = answers
	return o
}

func parameters(e endpoint) []object {
	all := []object{}
	if !e.open {
		all = append(all, object{"in": "header", "name": api.VersionHeader, "required": true, "schema": object{"type": "string"}})
	}
	if e.keeper {
		all = append(all, object{"in": "header", "name": api.KeeperHeader, "description": "Who asks.", "schema": keeperSchema()})
	}
	for part := range strings.SplitSeq(e.path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimSuffix(name, "}")
			schema := object{"type": "string"}
			if strings.HasSuffix(name, "_id") {
				schema["format"] = "uuid"
			}
			all = append(all, object{"in": "path", "name": name, "required": true, "schema": schema})
		}
	}
	for _, key := range e.query {
		all = append(all, object{"in": "query", "name": key, "schema": object{"type": "string"}})
	}
	return all
}

func jsonOf(schema object) object { return object{"application/json": object{"schema": schema}} }

// schema is that of a type; of a struct, where it stands.
func (d document) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return object{"type": "string", "format": "uuid"}
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix](), reflect.TypeFor[record.Address]():
		return object{"type": "string"}
	case reflect.TypeFor[record.CPUCap]():
		return object{"type": "number"}
	case reflect.TypeFor[record.StartOrder]():
		return object{"oneOf": []object{
			{"type": "integer", "minimum": 0, "maximum": record.MaxStartOrder}, {"type": "string", "enum": []string{record.StartOrder(0).String()}},
		}}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[record.Keeper]():
		return keeperSchema()
	case reflect.TypeFor[api.VMState]():
		return object{"type": "string", "enum": api.VMStates()}
	case reflect.TypeFor[api.MigrationState]():
		return object{"type": "string", "enum": api.MigrationStates()}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"nullable": true, "allOf": []object{d.schema(t.Elem())}}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	case reflect.Interface: // a size of a document
		return object{"oneOf": []object{{"type": "integer", "minimum": 0}, {"type": "string"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	}
	return object{"type": "string"}
}

func (d document) structure(t reflect.Type) object {
	name := t.Name()
	switch t {
	case reflect.TypeFor[dropshot.Body]():
		name = "Error"
	case reflect.TypeFor[record.NIC](): // NIC is the control plane's
		name = "GuestNIC"
	case reflect.TypeFor[documents.Disk](): // Disk is one that an instance has
		name = "WantedDisk"
	}
	if t.PkgPath() == reflect.TypeFor[status.Status]().PkgPath() { // an instance has disks, too
		name = "Sled" + strings.TrimPrefix(name, "Sled")
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, known := d.schemas[name]; known {
		return ref
	}
	properties, required := object{}, []string{}
	d.schemas[name] = object{"type": "object", "properties": properties}
	for _, f := range reflect.VisibleFields(t) {
		key, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" || f.Anonymous {
			continue // it is not served, or its fields are
		}
		properties[key] = d.schema(f.Type)
		if option == "" {
			required = append(required, key)
		}
	}
	if slices.Sort(required); len(required) > 0 {
		d.schemas[name].(object)["required"] = required
	}
	return ref
}

func keeperSchema() object { return object{"type": "string", "enum": record.Keepers()} }

// documentPath is where the document is.
const documentPath = "/openapi.json"

// describe answers with the document.
func (s *server) describe(call) (any, *api.Error) {
	data, err := OpenAPI()
	if err != nil {
		return nil, api.Internal(err)
	}
	return json.RawMessage(data), nil
}
