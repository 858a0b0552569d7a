// Command protobuf ROOT FILE writes the Go code of a .proto file, whose path is from the root, beside it. It needs no
// protoc, which go.mod can't name.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compiles a file, and has each generator write its part.
func run(dir, name string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{name}, Parameter: proto.String("paths=source_relative")}
	request.ProtoFile = descriptors(files[0], map[string]bool{})
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := generate(generator, request, dir); err != nil {
			return fmt.Errorf("%s: %w", generator, err)
		}
	}
	return nil
}

// descriptors are those of a file and what it imports, which come first.
func descriptors(f protoreflect.FileDescriptor, seen map[string]bool) (out []*descriptorpb.FileDescriptorProto) {
	if seen[f.Path()] {
		return nil
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		out = append(out, descriptors(f.Imports().Get(i).FileDescriptor, seen)...)
	}
	return append(out, protoutil.ProtoFromFileDescriptor(f))
}

func generate(generator string, request *pluginpb.CodeGeneratorRequest, dir string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", generator)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
