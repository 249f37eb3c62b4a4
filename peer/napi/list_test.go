package napi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

func record(mac, cn string) string {
	return fmt.Sprintf(`{"mac":%q,"belongs_to_type":"zone","belongs_to_uuid":%q,"cn_uuid":%q,"owner_uuid":%q,"primary":true,"state":"running","modified_timestamp":"1970-01-01T00:00:00.000Z"}`, mac, vm, cn, vm)
}

// Answers that no list of this sled's records can be: none is relied on.
func TestAnswersThatAreNoList(t *testing.T) {
	one := record(mac1, ours)
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"nothing":             {"", ErrReply},
		"HTML":                {"<html>", ErrReply},
		"null":                {"null", ErrReply},
		"cut":                 {"[" + one[:40], ErrReply},
		"an object":           {`{"nics":[` + one + `]}`, ErrReply},
		"two lists":           {"[] []", ErrReply},
		"a text in it":        {`["x"]`, ErrReply},
		"twice the same":      {"[" + one + "," + one + "]", ErrReply},
		"no owner":            {"[" + strings.Replace(one, "belongs_to_uuid", "belongs_to", 1) + "]", ErrReply},
		"an owner in capital": {"[" + strings.Replace(one, vm, strings.ToUpper(vm), 1) + "]", ErrReply},
		"a strange state":     {"[" + strings.Replace(one, "running", "gone", 1) + "]", ErrReply},
		"a strange type":      {"[" + strings.Replace(one, "zone", "vm", 1) + "]", ErrReply},
		"no MAC":              {"[" + strings.Replace(one, mac1, "x", 1) + "]", ErrReply},
		"a strange time":      {"[" + strings.Replace(one, "1970", "x", 1) + "]", ErrReply},
		"another sled's":      {"[" + record(mac1, theirs) + "]", ErrNoFilter},
		"no UUID of an owner": {"[" + strings.Replace(one, `"cn_uuid":"`+ours+`",`, "", 1) + "]", ErrNoFilter},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, err := client(replies(200, c.body)).List(t.Context(), RouteNICs, ours)
			if !errors.Is(err, c.want) || !errors.Is(err, ErrReply) || got != nil {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		})
	}
	for name, body := range map[string]string{"nothing": "", "another": record("90:b8:d0:00:00:09", ours), "a list": "[" + one + "]", "HTML": "<html>"} {
		synctest.Test(t, func(t *testing.T) {
			c := client(replies(200, body))
			_, gerr := c.Get(t.Context(), mac1)
			_, uerr := c.Update(t.Context(), mac1, "", Change{State: StateRunning})
			if !errors.Is(gerr, ErrReply) || !errors.Is(uerr, ErrReply) {
				t.Errorf("%s: get %v, update %v", name, gerr, uerr)
			}
		})
	}
}

// pages is a server of this many records that may change between requests.
func pages(n int, between func(request int, all []string) []string) http.HandlerFunc {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("90:b8:d0:%02x:%02x:%02x", i>>16, i>>8&0xff, i&0xff))
	}
	requests := 0
	return func(w http.ResponseWriter, r *http.Request) {
		requests++
		if between != nil {
			all = between(requests, all)
		}
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		offset, _ := strconv.Atoi(r.FormValue("offset"))
		page := all[min(offset, len(all)):]
		page = page[:min(limit, len(page))]
		var list []string
		for _, mac := range page {
			list = append(list, record(mac, ours))
		}
		_, _ = io.WriteString(w, "["+strings.Join(list, ",")+"]")
	}
}

func TestPaging(t *testing.T) {
	for records, requests := range map[int]int{0: 1, 1: 1, 999: 1, 1000: 2, 1005: 2, 2000: 3} {
		synctest.Test(t, func(t *testing.T) {
			c := client(pages(records, nil))
			got, err := c.List(t.Context(), RouteSearch, ours)
			asked := c.Host.(*fake).asked
			if err != nil || len(got) != records || len(asked) != requests {
				t.Errorf("%d records in %d requests, want %d in %d: %v", len(got), len(asked), records, requests, err)
			}
			if want := "10.99.99.12:80 GET /search/nics?cn_uuid=" + ours + "&limit=1000&offset=0"; asked[0] != want {
				t.Errorf("asked %s", asked[0])
			}
		})
	}
}

func TestPagesThatMove(t *testing.T) {
	const fresh = "00:00:00:00:00:01"
	synctest.Test(t, func(t *testing.T) {
		got, err := client(pages(1500, func(request int, all []string) []string {
			if request == 2 {
				return append([]string{fresh}, all...)
			}
			return all
		})).List(t.Context(), RouteNICs, ours)
		if err != nil || len(got) != 1500 {
			t.Errorf("after an insertion: %d records, %v", len(got), err)
		}
	})
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  error
	}{
		"the same page again and again": {func(w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = "limit=1000"
			pages(1000, nil)(w, r)
		}, ErrReply},
		"more than was asked for": {func(w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = "limit=5000"
			pages(1001, nil)(w, r)
		}, ErrReply},
		"no end": {pages(maxPages*pageSize+1, nil), ErrReply},
		"an older server for the second page": {func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("offset") == "0" {
				pages(1500, nil)(w, r)
				return
			}
			replies(422, `{"code":"InvalidParameters","message":"Invalid parameters","errors":[{"field":["cn_uuid"],"code":"UnknownParameters","message":"x"}]}`)(w, r)
		}, ErrNoFilter},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, err := client(c.serve).List(t.Context(), RouteNICs, ours)
			if !errors.Is(err, c.want) || got != nil {
				t.Errorf("%s: %d records, %v", name, len(got), err)
			}
		})
	}
}
