package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/ips"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
)

// brandChecks ask whether the brand can install zones: sparse takes packages, and omicron1
// a baseline and images. What the packaging in use does not need is fine.
func brandChecks() []Check {
	const group = "brand"
	return []Check{
		{ID: "publisher", Group: group, About: "the publisher from which base zones are installed answers", Asks: []Question{askPublisher, askRecords, askKernel}, Judge: judgePublisher},
		{ID: "entire", Group: group, About: "the incorporation that base zones are installed by is there", Asks: []Question{askEntire}, Judge: judgeEntire},
		{ID: "baseline", Group: group, About: "the baseline of zones of an image is there", Asks: []Question{askBaseline}, Judge: judgeBaseline},
		{ID: "images", Group: group, About: "the images have the sums that were published", Asks: []Question{askImages}, Judge: judgeImages},
	}
}

// only is a query that has an answer where Propolis comes into zones this way, and else the
// zero one.
func only[T any](kind packaging.Kind, query func(context.Context, Settings, host.Host) (T, error)) func(context.Context, Settings, host.Host) (T, error) {
	return func(ctx context.Context, s Settings, h host.Host) (none T, err error) {
		if s.Packaging != kind {
			return none, nil
		}
		return query(ctx, s, h)
	}
}

func queryEntire(_ context.Context, _ Settings, h host.Host) (string, error) {
	return ips.Installed(h.Files(), "entire")
}

func queryBaseline(_ context.Context, _ Settings, h host.Host) (string, error) {
	return packaging.FindBaseline(h.Files())
}

func queryImages(ctx context.Context, s Settings, h host.Host) ([]packaging.Sum, error) {
	return packaging.Settings{Images: s.Images}.Sums(ctx, h.Files())
}

// Publisher is the first publisher of packages.
type Publisher struct {
	ips.Publisher
	Silent error // why none of its origins answers; nil: one does
}

// queryPublisher asks the first publisher only: the brand takes entire from it
// (omniosorg/pkg5, src/brand/sparse/pkgcreatezone).
func queryPublisher(ctx context.Context, _ Settings, h host.Host) (p Publisher, err error) {
	all, err := ips.Publishers(h.Files())
	if err != nil || len(all) == 0 {
		return p, err
	}
	p.Publisher, p.Silent = all[0], fmt.Errorf("publisher %s has no origin", all[0].Name)
	for _, origin := range p.Origins {
		if p.Silent = answers(ctx, h, origin); p.Silent == nil {
			break
		}
	}
	return p, nil
}

// answers connects to an origin, or looks for the repository on the sled.
func answers(ctx context.Context, h host.Host, origin string) error {
	at, err := url.Parse(origin)
	if err != nil {
		return err
	}
	if at.Scheme == "file" {
		if _, err = h.Files().Stat(at.Path); err == nil && !strings.HasSuffix(at.Path, ".p5p") {
			_, err = h.Files().Stat(path.Join(at.Path, "pkg5.repository"))
		}
		return err
	}
	port := cmp.Or(at.Port(), map[string]string{"http": "80", "https": "443"}[at.Scheme])
	conn, err := h.Dial(ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// judgePublisher asks for a publisher that answers while no base zone is there. Later only
// the next release needs it, for bases of its own.
func judgePublisher(s Seen) Finding {
	p := s.Publisher
	if s.Settings.Packaging != packaging.Lofs {
		return fine("not needed: base zones of sparse are not installed here")
	}
	const hands = "let the sled reach a publisher of its release, through network, DNS or a copy on disk"
	f := fine("%s", strings.Join(append([]string{p.Name}, p.Origins...), " "))
	switch {
	case p.Name == "":
		f = fails("there is no publisher: no base zone can be installed").byHand(hands).then(omniosPublisher(s.Kernel)...)
	case p.Silent != nil:
		f = fails("publisher %s does not answer: %v", p.Name, p.Silent).byHand(hands).then(omniosPublisher(s.Kernel)...)
	}
	if f.Verdict == Fail && s.Records.Bases > 0 {
		f.Verdict = Warn
		f.Evidence += "; a base zone is there"
	}
	return f
}

// omniosPublisher is the command that adds the origin of OmniOS' own publisher.
func omniosPublisher(k system.Kernel) []string {
	if k.Distribution != system.OmniOS {
		return nil
	}
	release := "bloody"
	if k.Release > 0 {
		release = fmt.Sprintf("r%d", k.Release)
	}
	return []string{"pkg set-publisher -g https://pkg.omnios.org/" + release + "/core/ omnios"}
}

func judgeEntire(s Seen) Finding {
	switch {
	case s.Settings.Packaging != packaging.Lofs:
		return fine("not needed: base zones of sparse are not installed here")
	case s.Entire == "":
		return fails("the package entire is not installed: the sparse brand installs no zone without it").then("pkg install entire")
	}
	return fine("entire %s", s.Entire)
}

func judgeBaseline(s Seen) Finding {
	switch {
	case s.Settings.Packaging != packaging.Image:
		return fine("not needed: zones are not installed from images here")
	case s.Baseline == "":
		return fails("there is no baseline: the %s brand installs no zone without its gzonly.txt", packaging.Brand).
			byHand("install the package "+packaging.BaselinePackage).then("svcadm enable "+packaging.Baseline, "svcadm restart "+packaging.Baseline)
	}
	return fine("in %s", s.Baseline)
}

func judgeImages(s Seen) Finding {
	if s.Settings.Packaging != packaging.Image {
		return fine("not needed: zones are not installed from images here")
	}
	const shown = 12 // of 64 digits
	var wrong, right []string
	for _, sum := range s.Images {
		name := path.Base(sum.Image)
		switch {
		case sum.Expected == "":
			right = append(right, fmt.Sprintf("%s %.*s (no file next to it says what it should be)", name, shown, sum.SHA256))
		case sum.Expected != sum.SHA256:
			wrong = append(wrong, fmt.Sprintf("%s has the SHA-256 %.*s, and %s says %.*s", sum.Image, shown, sum.SHA256, path.Base(sum.From), shown, sum.Expected))
		default:
			right = append(right, fmt.Sprintf("%s %.*s, as %s says", name, shown, sum.SHA256, path.Base(sum.From)))
		}
	}
	if wrong != nil {
		return fails("%s", strings.Join(wrong, "; ")).byHand("download the image again, with its sum")
	}
	return fine("%s", strings.Join(right, "; "))
}
