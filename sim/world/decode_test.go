package world

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What encoding/json writes is read as encoding/json reads it, whatever is in it.
func TestEntriesAreReadAsTheyAreWritten(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	all := shapes{}
	for range 300 {
		for _, of := range []reflect.Type{
			reflect.TypeFor[State](), reflect.TypeFor[Zone](), reflect.TypeFor[Dataset](), reflect.TypeFor[Process](), reflect.TypeFor[Repository](),
			reflect.TypeFor[Link](), reflect.TypeFor[Stack](), reflect.TypeFor[Disk](), reflect.TypeFor[NAPI](),
		} {
			v := reflect.New(of)
			anything(draw, v.Elem(), 4)
			if s, is := v.Interface().(*State); is {
				s.Nexus = nil // which is left to encoding/json
			}
			data, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			want, got := reflect.New(of), reflect.New(of)
			if err := json.Unmarshal(data, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if !all.read(string(data), got.Interface()) {
				t.Fatalf("not read: %s", data)
			}
			if diff := cmp.Diff(want.Interface(), got.Interface(), cmpopts.IgnoreUnexported(State{})); diff != "" {
				t.Fatalf("%s: %s", data, diff)
			}
		}
	}
}

// Text in another form than the simulated sled writes is left to encoding/json.
func TestWhatIsNotWrittenByUsIsNotReadQuickly(t *testing.T) {
	for _, text := range []string{
		``, `{`, `{"name":"a"`, `{"name":"a"}}`, `{"name":"a"} `, ` {"name":"a"}`, `{"name" :"a"}`, `{"name":1}`, `{"name":"a","quota":1}`, `{"name":"a",}`,
		`{"slot":1.5}`, `{"slot":99999999999999999999}`, `{"size":-1}`, `{"gone":1}`, `{"gone":tru`, `{"scraps":["a"`, `{"scraps":{}}`, `[]`, `{"NAME":"a"}`, `{"name":"\`,
	} {
		if (shapes{}).read(text, &Disk{}) {
			t.Errorf("read: %s", text)
		}
	}
}

// anything fills a value.
func anything(draw *rand.Rand, v reflect.Value, depth int) {
	few := draw.IntN(3)
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "web-01", "a<b>&c", "\"q\\\"", "ü\n\x00\u2028", "/zones/x y", "tab\t"}[draw.IntN(8)])
	case reflect.Bool:
		v.SetBool(few == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(draw.Int64() >> draw.IntN(64) * int64(1-2*draw.IntN(2)))
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(draw.Uint64() >> (64 - v.Type().Bits()) >> draw.IntN(60))
	case reflect.Pointer:
		if few > 0 && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			anything(draw, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth == 0 || draw.IntN(6) == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), few, few))
		for i := range few {
			anything(draw, v.Index(i), depth-1)
		}
	case reflect.Map:
		if depth == 0 || draw.IntN(6) == 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range few {
			key, one := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			anything(draw, key, 0)
			anything(draw, one, depth-1)
			v.SetMapIndex(key, one)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(draw.Int64N(1<<33), draw.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				anything(draw, v.Field(i), depth)
			}
		}
	}
}
