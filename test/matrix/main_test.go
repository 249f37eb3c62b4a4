package matrix

import (
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

func TestMain(m *testing.M) { sledtest.Main(m) }
