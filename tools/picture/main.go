// Command picture makes the moving picture of the README: it runs Postroom, uses it
// from the command line and in Chromium as an agent and a person would, and writes
// what both show as a GIF.
//
// usage: picture <postroom program> <file.gif>
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"log"
	"maps"
	"net"
	"net/smtp"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	width, height = 960, 600
	patience      = 2 * time.Minute
	maxSize       = 1 << 20
	key           = "sk_live_theKeyOfThePictureInTheReadme"
	domain        = "postroom.localhost"
	agent         = "signup@" + domain
)

// frame is one picture and how long it is shown.
type frame struct {
	shot image.Image
	show time.Duration
}

// film collects frames.
type film struct {
	program, folder, api string
	browser              context.Context
	terminal             strings.Builder // what it shows, as HTML
	frames               []frame
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: picture <postroom program> <file.gif>")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(program, file string) error {
	folder, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	httpAddr, err := freeAddress()
	if err != nil {
		return err
	}
	smtpAddr, err := freeAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, setup, err := serve(ctx, program, folder, httpAddr, smtpAddr)
	if err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait() // its end changes nothing in the picture
	}()
	alloc, stop := chromedp.NewExecAllocator(ctx, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	defer stop()
	browser, closeBrowser := chromedp.NewContext(alloc)
	defer closeBrowser()

	f := &film{program: program, folder: folder, api: "http://" + httpAddr, browser: browser}
	if err := f.signIn(setup); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	if err := f.story(ctx, smtpAddr); err != nil {
		return err
	}
	return f.write(file)
}

// freeAddress returns an address where nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

var setupLink = regexp.MustCompile(`http://\S+/setup/\S+`)

// serve starts the server and returns the link that sets the password.
func serve(ctx context.Context, program, folder, httpAddr, smtpAddr string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, program, "serve")
	cmd.Env = append(os.Environ(), "POSTROOM_DATA="+folder+"/data", "POSTROOM_HTTP="+httpAddr, "POSTROOM_SMTP="+smtpAddr,
		"POSTROOM_BOOTSTRAP_KEY="+key)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link := setupLink.FindString(lines.Text()); link != "" {
			go func() {
				for lines.Scan() { // so that it can go on
				}
			}()
			return cmd, link, nil
		}
	}
	return nil, "", errors.Join(errors.New("the server prints no link"), cmd.Wait())
}

// messageID matches the newest message in a list.
var messageID = regexp.MustCompile(`msg_\w+`)

// story is what the picture shows.
func (f *film) story(ctx context.Context, smtpAddr string) error {
	if _, err := f.postroom(ctx, "inbox", "create", "ana"); err != nil {
		return err
	}
	f.say("# An agent asks for an address.")
	if err := f.command(ctx, "inbox", "create", "signup", "--policy", "approval"); err != nil {
		return err
	}
	f.say("# It signs up at a shop, and waits for the code.")
	wait := []string{"wait", agent, "--code", "--from", "*@shop.example"}
	f.prompt(wait)
	if err := f.shoot(2 * time.Second); err != nil {
		return err
	}
	mail := "From: Shop <noreply@shop.example>\r\nTo: " + agent + "\r\nSubject: Your verification code\r\n\r\n" +
		"Welcome to the shop.\r\n\r\nYour verification code is 482913. It is good for 10 minutes.\r\n"
	if err := smtp.SendMail(smtpAddr, nil, "noreply@shop.example", []string{agent}, []byte(mail)); err != nil {
		return err
	}
	code, err := f.postroom(ctx, wait...)
	if err != nil {
		return err
	}
	list, err := f.postroom(ctx, "message", "list", "--inbox", agent, "--json")
	if err != nil {
		return err
	}
	if err := f.page("/messages", 1500*time.Millisecond, "Your verification code"); err != nil {
		return err
	}
	if err := f.page("/messages/"+messageID.FindString(list), 2500*time.Millisecond, "482913"); err != nil {
		return err
	}
	f.result(code)
	if err := f.shoot(2500 * time.Millisecond); err != nil {
		return err
	}
	f.terminal.Reset()
	f.say("# It writes to a person. A person approves that first.")
	if err := f.command(ctx, "send", "--inbox", agent, "--to", "ana@"+domain, "--subject", "Order 1042", "--text", "Hello Ana, I ordered the chairs."); err != nil {
		return err
	}
	if err := f.page("/approvals", 2500*time.Millisecond, "Order 1042"); err != nil {
		return err
	}
	if err := f.click("main a[href^='/approvals/drf_']", 2500*time.Millisecond); err != nil {
		return err
	}
	if err := f.click("button.wide", 2500*time.Millisecond); err != nil {
		return err
	}
	f.say("# Ana has it.")
	return f.command(ctx, "wait", "ana@"+domain, "--subject", "order", "--since", "1m")
}

// postroom runs a command of the client and returns what it prints.
func (f *film) postroom(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env = append(os.Environ(), "POSTROOM_URL="+f.api, "POSTROOM_KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("postroom %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// command runs a command and shows it with what it prints.
func (f *film) command(ctx context.Context, args ...string) error {
	f.prompt(args)
	if err := f.shoot(time.Second); err != nil {
		return err
	}
	out, err := f.postroom(ctx, args...)
	if err != nil {
		return err
	}
	f.result(out)
	return f.shoot(2 * time.Second)
}

func (f *film) say(text string) { fmt.Fprintf(&f.terminal, "<i>%s</i>\n", html.EscapeString(text)) }

func (f *film) prompt(args []string) {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.ContainsAny(a, " *") {
			quoted[i] = "'" + a + "'"
		}
	}
	fmt.Fprintf(&f.terminal, "<b>$</b> postroom %s\n", html.EscapeString(strings.Join(quoted, " ")))
}

func (f *film) result(text string) { fmt.Fprintf(&f.terminal, "<u>%s</u>\n", html.EscapeString(text)) }

const terminalPage = `<!doctype html><meta charset="utf-8"><style>
body{margin:0;background:#11161d;color:#e8edf3;font:17px/1.5 monospace}
pre{margin:0;padding:26px 30px;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}
i{color:#8b98a9;font-style:normal}b{color:#7cc4ff}u{color:#a5e3a1;text-decoration:none}</style><pre>`

// shoot adds a frame of the terminal.
func (f *film) shoot(show time.Duration) error {
	page := terminalPage + f.terminal.String() + "</pre>"
	file := f.folder + "/terminal.html"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	if err := chromedp.Do(f.browser, chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+file)); err != nil {
		return fmt.Errorf("show the terminal: %w", err)
	}
	return f.keep(show)
}

// page adds a frame of a page of the dashboard, which must show a text.
func (f *film) page(path string, show time.Duration, text string) error {
	if err := chromedp.Do(f.browser, chromedp.Navigate(f.api+path)); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	seen, err := chromedp.Run(f.browser, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil || !strings.Contains(seen, text) {
		return errors.Join(fmt.Errorf("%s does not show %s:\n%s", path, text, seen), err)
	}
	return f.keep(show)
}

// click clicks on what leads to another page, and adds a frame of that.
func (f *film) click(css string, show time.Duration) error {
	if _, err := chromedp.RunResponse(f.browser, chromedp.Click(chromedp.CSS(css))); err != nil {
		return fmt.Errorf("click %s: %w", css, err)
	}
	return f.keep(show)
}

// signIn sets the password and is signed in from then on.
func (f *film) signIn(link string) error {
	if err := chromedp.Do(f.browser, chromedp.EmulateViewport(width, height), chromedp.Navigate(link)); err != nil {
		return err
	}
	for _, field := range []string{"password", "again"} {
		if err := chromedp.Do(f.browser, chromedp.SendKeys(chromedp.CSS("[name="+field+"]"), "four words of mine")); err != nil {
			return err
		}
	}
	_, err := chromedp.RunResponse(f.browser, chromedp.Click(chromedp.CSS("main button")))
	return err
}

func (f *film) keep(show time.Duration) error {
	shot, err := chromedp.Run(f.browser, chromedp.CaptureScreenshot())
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	f.frames = append(f.frames, frame{picture, show})
	return nil
}

// write writes the frames with their most frequent colors.
func (f *film) write(file string) error {
	count := map[color.RGBA]int{}
	for _, fr := range f.frames {
		for y := range height {
			for x := range width {
				count[rounded(fr.shot.At(x, y))]++
			}
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range colors[:min(256, len(colors))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	out := &gif.GIF{}
	for _, fr := range f.frames {
		p := image.NewPaletted(image.Rect(0, 0, width, height), palette)
		for y := range height {
			for x := range width {
				c := rounded(fr.shot.At(x, y))
				i, known := nearest[c]
				if !known {
					i = uint8(palette.Index(c)) //nolint:gosec // at most 256 colors
					nearest[c] = i
				}
				p.Pix[y*p.Stride+x] = i
			}
		}
		out.Image, out.Delay = append(out.Image, p), append(out.Delay, int(fr.show/(10*time.Millisecond)))
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, out); err != nil {
		return err
	}
	if b.Len() > maxSize {
		return fmt.Errorf("the picture has %d bytes, more than %d", b.Len(), maxSize)
	}
	log.Printf("%s: %d frames, %d bytes", file, len(out.Image), b.Len())
	return os.WriteFile(file, b.Bytes(), 0o644) //nolint:gosec // a picture for all
}

// rounded returns the color with 6 bits for each channel.
func rounded(c color.Color) color.RGBA {
	r, g, b, _ := c.RGBA()
	step := func(v uint32) uint8 { return uint8(min(255, (v>>8+2)&^3)) } //nolint:gosec // bounded
	return color.RGBA{step(r), step(g), step(b), 255}
}
