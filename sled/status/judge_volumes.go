package status

import (
	"strings"

	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/volume"
)

// volumeProblems are the volumes that are not as recorded. That a pool does not answer, or has no key, another problem
// tells.
func (j *judge) volumeProblems() {
	for _, v := range j.Volumes {
		code := map[volume.State]string{volume.Missing: "volume-missing", volume.Differs: "volume-differs"}[v.State]
		if code == "" || j.lost[v.Pool] || j.busy[volume.Subject(v.ID)] {
			continue
		}
		p := Problem{Code: code, Severity: Attention, Subject: Subject{Kind: "volume", Name: v.Name, ID: v.ID}, Text: "volume " + v.Name + ": " + v.Reason, Next: []string{"sledctl volume get " + v.Name}}
		if len(v.Instances) > 0 {
			p.Severity, p.Count = Trouble, len(v.Instances)
			p.Text += "; a disk of " + strings.Join(v.Instances, ", ")
		}
		j.add(p)
	}
}

// imageProblems are the images that nothing can be cloned from any more.
func (j *judge) imageProblems() {
	for _, i := range j.Images {
		if i.State == image.Missing && !j.lost[i.Pool] && !j.busy[i.Subject()] {
			j.add(Problem{Code: "image-missing", Severity: Attention, Subject: Subject{Kind: "image", Name: i.Name, ID: i.ID},
				Text: "image " + i.Name + " is gone from its pool", Next: []string{"sledctl image delete " + i.Name}})
		}
	}
}
