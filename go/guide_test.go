package petal

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?m)(?:^<!-- file: (.*) -->\n)?^```(?:go|console)\n((?s:.*?))^```$")

func TestBlocksOfTheGuideRun(t *testing.T) {
	if _, err := exec.LookPath("petal"); err != nil {
		t.Skip("the guide needs the petal program on the PATH")
	}
	page, err := os.ReadFile("../docs/guides/go.md")
	if err != nil {
		t.Fatal(err)
	}
	clone, _ := filepath.Abs("..")
	folder := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		data, _ := os.ReadFile("../testdata/" + name)
		write(name, data)
	}
	commands := 0
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		if match[1] != "" {
			write(match[1], []byte(match[2]))
			continue
		}
		for _, part := range strings.Split("\n"+match[2], "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			run := exec.Command("bash", "-c", strings.ReplaceAll(command, "CLONE", clone))
			run.Dir, run.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GO111MODULE=on")
			output, err := run.CombinedOutput()
			if err != nil || want != "" && strings.TrimSpace(string(output)) != strings.TrimSpace(want) {
				t.Errorf("%s: %v\n%s", command, err, output)
			}
			commands++
		}
	}
	if commands < 6 {
		t.Errorf("only %d commands", commands)
	}
}
