package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeClient writes the file out of package client. It contains one method per
// operation of the ogen client in the file generated. The method removes the
// prefix that ogen adds to request errors. Operations with a method in another
// file of the package are left out.
func writeClient(generated, out string) error {
	files := token.NewFileSet()
	api, err := parser.ParseFile(files, generated, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	written, err := clientMethods(filepath.Dir(out), filepath.Base(out))
	if err != nil {
		return err
	}
	src, err := clientGo(api, written)
	if err != nil {
		return err
	}
	return os.WriteFile(out, src, 0o644)
}

// clientMethods returns the names of the methods of Client in dir, except those
// in the file skip.
func clientMethods(dir, skip string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		if filepath.Base(path) == skip || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}

// clientGo returns the source of the file.
func clientGo(api *ast.File, written []string) ([]byte, error) {
	methods := map[string]*ast.Field{}
	ast.Inspect(api, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !strings.HasSuffix(spec.Name.Name, "Invoker") {
			return true
		}
		for _, m := range spec.Type.(*ast.InterfaceType).Methods.List {
			if len(m.Names) == 1 && !slices.Contains(written, m.Names[0].Name) {
				methods[m.Names[0].Name] = m
			}
		}
		return false
	})
	if len(methods) == 0 {
		return nil, fmt.Errorf("no operations in ogen's client: has ogen changed?")
	}
	var out bytes.Buffer
	out.WriteString(header + "package client\n\nimport (\n\t\"context\"\n\n\t\"github.com/postroom/postroom/gen\"\n)\n")
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if err := writeMethod(&out, name, methods[name]); err != nil {
			return nil, err
		}
	}
	return format.Source(out.Bytes())
}

// writeMethod writes the method of one operation.
func writeMethod(out *bytes.Buffer, name string, m *ast.Field) error {
	f := m.Type.(*ast.FuncType)
	if f.Results.NumFields() != 2 {
		return fmt.Errorf("%s: want a result and an error: has ogen changed?", name)
	}
	var params, args []string
	for _, p := range f.Params.List {
		arg, typ := p.Names[0].Name, typeName(p.Type)
		params = append(params, arg+" "+typ)
		if strings.HasPrefix(typ, "...") {
			arg += "..."
		}
		args = append(args, arg)
	}
	// The comment starts with a line of ogen and ends with the route.
	lines := strings.Split(strings.TrimSpace(m.Doc.Text()), "\n")
	fmt.Fprintf(out, "\n// %s calls %s.\n", name, lines[len(lines)-1])
	for _, line := range lines[1 : len(lines)-2] {
		out.WriteString(strings.TrimSpace("// "+line) + "\n")
	}
	fmt.Fprintf(out, "func (c *Client) %s(%s) (%s, error) {\n\treturn unwrap(c.api.%s(%s))\n}\n",
		name, strings.Join(params, ", "), typeName(f.Results.List[0].Type), name, strings.Join(args, ", "))
	return nil
}

// typeName returns a type of package gen as written in package client.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return "*" + typeName(t.X)
	case *ast.Ellipsis:
		return "..." + typeName(t.Elt)
	case *ast.ArrayType:
		return "[]" + typeName(t.Elt)
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	case *ast.Ident:
		if t.IsExported() {
			return "gen." + t.Name
		}
		return t.Name
	}
	return fmt.Sprintf("%T", t) // not valid Go: the build fails
}
