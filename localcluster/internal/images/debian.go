package images

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"example.com/fairlead/localcluster/internal/debian"
)

// server is a program of Debian's and how its image runs it: as the upstream
// image of the same name does.
type server struct {
	binary string // path in the package
	config v1.Config
	files  Files    // beside the program
	copies []string // files of the packages, beside the program
	user   string   // its line in /etc/passwd
}

// memcached and nginx: users, folders, ports and configuration are those of
// the upstream images.
var (
	memcached = server{
		binary: "usr/bin/memcached",
		user:   "memcache:x:11211:11211:memcached:/nonexistent:/bin/false",
		config: v1.Config{
			User: "memcache", Cmd: []string{"memcached"}, Env: []string{searchPath},
			ExposedPorts: map[string]struct{}{"11211/tcp": {}},
		},
	}
	nginx = server{
		binary: "usr/sbin/nginx",
		user:   "nginx:x:101:101:nginx:/nonexistent:/bin/false",
		config: v1.Config{
			Cmd: []string{"nginx", "-g", "daemon off;"}, Env: []string{searchPath}, StopSignal: "SIGQUIT",
			ExposedPorts: map[string]struct{}{"80/tcp": {}},
		},
		copies: []string{"usr/share/nginx/html/index.html", "etc/nginx/mime.types"},
		files: Files{
			"etc/nginx/nginx.conf":          {Mode: 0o644, Data: []byte(nginxConf)},
			"etc/nginx/conf.d/default.conf": {Mode: 0o644, Data: []byte(nginxDefaultConf)},
			"usr/share/nginx/html/50x.html": {Mode: 0o644, Data: []byte("<h1>An error occurred.</h1>\n")},
			"var/log/nginx/access.log":      {Target: "/dev/stdout"},
			"var/log/nginx/error.log":       {Target: "/dev/stderr"},
			"var/cache/nginx":               {Mode: os.ModeDir | 0o777},
			"var/lib/nginx":                 {Mode: os.ModeDir | 0o777},
			"var/run":                       {Target: "../run"},
			"run":                           {Mode: os.ModeDir | 0o777},
		},
	}
)

const nginxConf = `user  nginx;
worker_processes  auto;
error_log  /var/log/nginx/error.log notice;
pid        /var/run/nginx.pid;

events {
    worker_connections  1024;
}

http {
    include       /etc/nginx/mime.types;
    default_type  application/octet-stream;
    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for"';
    access_log  /var/log/nginx/access.log  main;
    sendfile        on;
    keepalive_timeout  65;
    include /etc/nginx/conf.d/*.conf;
}
`

const nginxDefaultConf = `server {
    listen       80;
    server_name  localhost;
    location / {
        root   /usr/share/nginx/html;
        index  index.html index.htm;
    }
    error_page   500 502 503 504  /50x.html;
    location = /50x.html {
        root   /usr/share/nginx/html;
    }
}
`

// fromDebian makes the image of a server from the first of the packages, with
// the libraries that it needs of the others and of its release's libc.
func fromDebian(s server, release debian.Release, packages ...string) func(context.Context, *Maker) (Image, error) {
	return func(ctx context.Context, m *Maker) (Image, error) {
		name := packages[0]
		fetched, err := m.Debian.Fetch(ctx, release, append(packages, "libc6")...)
		if err != nil {
			return Image{}, err
		}
		version := fetched[0].Upstream()
		root := filepath.Join(m.Dir, name+"-"+version)
		if err := debian.Unpack(ctx, root, fetched...); err != nil {
			return Image{}, err
		}
		files, err := m.busybox(ctx) // for exec and for probes, as the upstream images have a shell
		if err != nil {
			return Image{}, err
		}
		if err := addProgram(files, root, s.binary); err != nil {
			return Image{}, err
		}
		for _, file := range s.copies {
			files[file] = File{Mode: 0o644, Source: filepath.Join(root, file)}
		}
		maps.Copy(files, s.files)
		maps.Copy(files, passwd(s.user))
		config := s.config
		config.Labels = standIn(name, fetched[0].Version, "Debian's package")
		return Image{Names: []string{name + ":" + version}, Config: config, Files: files}, nil
	}
}

// addProgram adds a program of an unpacked root folder, its loader, and the
// libraries that it and they ask for.
func addProgram(files Files, root, program string) error {
	binary, err := elf.Open(filepath.Join(root, program))
	if err != nil {
		return err
	}
	defer binary.Close()
	loader, err := loaderOf(filepath.Join(root, program))
	if err != nil {
		return err
	}
	if loader != "" {
		source, err := locate(root, filepath.Base(loader))
		if err != nil {
			return err
		}
		files[strings.TrimPrefix(loader, "/")] = File{Mode: 0o755, Source: source}
	}
	files[program] = File{Mode: 0o755, Source: filepath.Join(root, program)}
	return addLibraries(files, root, binary)
}

// libraryDir is on the loader's search path whatever the architecture.
const libraryDir = "usr/lib"

func addLibraries(files Files, root string, binary *elf.File) error {
	needed, err := binary.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range needed {
		inside := libraryDir + "/" + name
		if _, ok := files[inside]; ok {
			continue
		}
		source, err := locate(root, name)
		if err != nil {
			return err
		}
		files[inside] = File{Mode: 0o644, Source: source}
		library, err := elf.Open(source)
		if err != nil {
			return err
		}
		err = addLibraries(files, root, library)
		if err := errors.Join(err, library.Close()); err != nil {
			return err
		}
	}
	return nil
}

// locate finds a library below an unpacked root folder, through the symbolic
// link that its name is.
func locate(root, name string) (string, error) {
	var found string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == name && !entry.IsDir() && found == "" {
			// A link that leads out of the package leads nowhere here.
			if target, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(target, root) {
				found = target
			}
		}
		return err
	})
	if err == nil && found == "" {
		err = fmt.Errorf("no package has %s: add the one that does to the list of images", name)
	}
	return found, err
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}
