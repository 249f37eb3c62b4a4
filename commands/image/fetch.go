package image

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/web"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/image/checksum"
	"github.com/sledctl/sledctl/sled/image/download"
)

// fetching is what is asked for.
type fetching struct {
	cli.Mutation
	name, pool, sha256, checksums string
}

func newFetch(env *cli.Env) *cobra.Command {
	var o fetching
	cmd := &cobra.Command{
		Use:   "fetch URL",
		Short: "Make an image of a disk on a web server",
		Long: `Make an image of a disk on a web server: it is downloaded, and then taken as image import takes a file, of the same formats, and refused
for the same reasons. HTTPS_PROXY, HTTP_PROXY and NO_PROXY say which proxies are between. What has come is kept on the sled until the
image is made: the same command continues a download that broke off or was killed, and image prune removes it. A file with another digest is
removed at once. --checksums takes lists as distributions publish them: SHA256SUMS, SHA512SUMS, CHECKSUM. Their signatures are not
checked: a list counts as much as the place that it comes from. With --sha256, an image that is there is not downloaded again.`,
		Example: `  BASE=https://cloud.debian.org/images/cloud/trixie/latest
  sledctl image fetch $BASE/debian-13-genericcloud-amd64.qcow2 \
    --name debian-13 --checksums $BASE/SHA512SUMS
  sledctl image fetch https://example.org/disk.raw.zst --name disk -n`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runFetch(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the image (default: that of the file)")
	flags.StringVar(&o.pool, "pool", "", "`POOL` to keep it on (default: the one with the most room)")
	flags.StringVar(&o.sha256, "sha256", "", "`DIGEST` that the file must have, in hexadecimal")
	flags.StringVar(&o.checksums, "checksums", "", "`URL` or file of a list with the file's digest")
	cmd.MarkFlagsMutuallyExclusive("sha256", "checksums")
	env.CompleteFlag(cmd, "pool", env.CompletePools)
	cli.CompleteArgs(cmd, func(ctx context.Context) []string { return begun(ctx, env) })
	o.Add(cmd, false)
	env.AddOutput(cmd)
	return cmd
}

// begun are the addresses of which there are downloads.
func begun(ctx context.Context, e *cli.Env) (addresses []string) {
	c, h, err := e.Reach()
	if err != nil {
		return nil
	}
	all, err := download.List(ctx, h, c.Image.Directory)
	if err != nil {
		return nil
	}
	for _, f := range all {
		addresses = append(addresses, f.URL)
	}
	return addresses
}

func runFetch(ctx context.Context, e *cli.Env, o fetching, address string) error {
	if err := imageList().Check(e.Output); err != nil {
		return err
	}
	want, err := o.want(e, address)
	if err != nil {
		return err
	}
	c, op, err := e.Operation()
	if err != nil {
		return err
	}
	if _, err := op.Ledger(ctx); err != nil { // a download may take hours
		return err
	}
	want.Directory = c.Image.Directory
	trusted, err := o.digest(ctx, op.Host, &want)
	if err != nil {
		return err
	}
	if !trusted {
		e.Progress.Warn(fmt.Errorf("%s comes without a digest from a safe place: everybody on the way can change it", web.Shown(want.From)))
	}
	pools, err := e.ZonePools(ctx, op.Host)
	if err == nil {
		err = cli.WholePools(ctx, e, &o.pool)
	}
	if err != nil {
		return err
	}
	want.Pool = o.pool
	made, reports, err := image.Fetch(ctx, op, want, pools, o.Dry())
	switch {
	case err != nil:
		return failure.WithReport(err, reports...)
	case o.Dry():
		return e.PrintPlan(o.Mutation, reports...)
	}
	return imageList().PrintOne(e.Streams.Out, e.Output, made)
}

// want is what the command line says.
func (o fetching) want(e *cli.Env, address string) (want image.FetchWant, err error) {
	want = image.FetchWant{Name: o.name, Client: web.New(e.Environ, "sledctl"), Progress: e.Progress.Copies}
	if want.From, err = web.Parse(address); err != nil {
		return want, err
	}
	file := path.Base(want.From.Path)
	if o.name == "" {
		want.Name = nameOf(file)
		if image.ValidateName(want.Name) != nil {
			return want, &cli.UsageError{Text: fmt.Sprintf("%s cannot name an image", file), Advice: "give it a name with --name"}
		}
	}
	if o.sha256 != "" {
		d, ok := checksum.Parse(o.sha256)
		if !ok || d.SHA256() == "" {
			return want, &cli.UsageError{Text: fmt.Sprintf("--sha256 %s: want 64 hexadecimal digits", o.sha256)}
		}
		want.Digest = d
	}
	return want, nil
}

// digest finds the digest of the file, if there is to be one, and says whether nobody between the server and the sled can change the
// file unseen.
func (o fetching) digest(ctx context.Context, h host.Host, want *image.FetchWant) (trusted bool, err error) {
	safe := func(at *url.URL) bool { return at.Scheme == "https" }
	var text string
	switch list := o.checksums; {
	case list == "":
		return want.Digest != "" || safe(want.From), nil
	case strings.Contains(list, "://"):
		at, err := web.Parse(list)
		if err == nil {
			text, err = want.Client.Text(ctx, h, at)
		}
		if err != nil {
			return false, err
		}
		trusted = safe(at)
	default:
		info, err := os.Stat(list)
		if err == nil && info.Size() > web.MaxText {
			err = errors.New("it is too large for a list of digests")
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(list)
		}
		if err != nil {
			return false, cli.NamedFile(list, err)
		}
		text, trusted = string(data), true
	}
	want.Digest, err = checksum.Find(text, o.checksums, path.Base(want.From.Path))
	return trusted, err
}
