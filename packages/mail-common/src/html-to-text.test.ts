import { processorMs } from '@sluice/testkit/processor-time'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { htmlToText } from './html-to-text.ts'

test.each<[html: string, text: string]>([
  ['hello', 'hello'],
  ['<p>One</p><p>Two</p>', 'One\n\nTwo'],
  ['a<br>b<BR/>c', 'a\nb\nc'],
  ['<div>a <b>b</b>\n  c</div>', 'a b c'],
  ['<ul><li>one</li><li>two</li></ul>', '- one\n\n- two'],
  ['<table><tr><td>1</td><td>2</td></tr></table>', '1 2'],
  ['yes<blockquote type="cite">a<br>b<blockquote>c</blockquote></blockquote>no', 'yes\n\n> a\n> b\n\n> > c\n\nno'],
  ['<blockquote>a</blockquote></blockquote>b\ue000', '> a\n\nb'],
  ['<style>p{}</style><script>alert("<p>x</p>")</script >after', 'after'],
  ['<head><title>x</title></head><body>y</body>', 'y'],
  ['a<!-- <p>no</p> -->b', 'ab'],
  ['<!DOCTYPE html><?xml?>a', 'a'],
  ['1 < 2 &amp;&amp; 3 &gt; 2', '1 < 2 && 3 > 2'],
  ['&lt;b&gt; &quot;&#39;&#x41;&nbsp;&auml;&Auml;&hellip;&mdash;&nosuch;', '<b> "\'A äÄ…—&nosuch;'],
  ['&#0;&#xD800;&#1114112;', '\ufffd\ufffd\ufffd'],
  ['&amp;lt;', '&lt;'],
  ['a<script>b', 'a'],
  ['a<!-- b', 'a'],
  ['a<p', 'a'],
  ['<headline>a</headline>', 'a'],
  ['', ''],
  ['see <a href="https://a.example/x?b=1&amp;c=2">this</a>.', 'see this (https://a.example/x?b=1&c=2).'],
  ["<A class=x HREF='http://a.example'><b>this</b> page</A>", 'this page (http://a.example)'],
  ['<a href=https://a.example/x>a<br></a>b', 'a (https://a.example/x)b'],
  ['<a href="https://www.a.example/">a.example</a> <a href="https://a.example/x">https://a.example/x</a>', 'a.example https://a.example/x'],
  ['<a href="mailto:ada@a.example">Ada</a> <a name="x">b</a> <a href="javascript:x()">c</a> <a href="#d">d</a>', 'Ada b c d'],
  ['<a href="https://a.example"><img src=x></a>e', 'e'],
  ['<a href="https://a.example/one">one<a href="https://a.example/two">two</a>', 'one (https://a.example/one)two (https://a.example/two)'],
  ['<abbr href="https://a.example">f</abbr><a href="https://a.example/a b">g</a>', 'fg'],
  ['<a href="https://a.example">h<blockquote>i</blockquote></a>', 'h\n\n> i'],
  ['<a href="https://a.example/&#xe000;x">j</a>', 'j'],
  [`<a title=" href=https://b.example" data-href='https://c.example' href = "https://a.example">k</a>`, 'k (https://a.example)'],
  ['<a href="https://a.example>l</a>', 'l'],
])('htmlToText(%j) is %j', (html, text) => {
  expect(htmlToText(html)).toBe(text)
})

test('adds at most 100 addresses, and none of more than 500 characters', () => {
  const link = (address: string) => `<a href="https://a.example/${address}">x</a> `
  expect(htmlToText(link('y').repeat(200)).match(/\(/g)).toHaveLength(100)
  expect(htmlToText('<a href="https://a.example">x '.repeat(200)).match(/\(/g)).toHaveLength(100)
  expect(htmlToText(link('y'.repeat(500)))).toBe('x')
})

test('returns trimmed text for any input', () => {
  const pieces = fc.constantFrom(
    '<',
    '>',
    '</',
    '<!--',
    '-->',
    '<script>',
    '</script>',
    '<p>',
    '&amp;',
    '&#',
    ';',
    '"',
    ' ',
    '\n',
    'x',
    '😀',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
      expect(htmlToText(parts.join(''))).toBe(htmlToText(parts.join('')).trim())
    }),
    { seed: 2 },
  )
})

/** The least processor time of several readings, so that other work of the machine counts little. */
function msOf(html: string): number {
  const times = Array.from({ length: 5 }, () => {
    const beforeMs = processorMs()
    htmlToText(html)
    return processorMs() - beforeMs
  })
  return Math.min(...times)
}

// Sixteen times the length takes sixteen times as long. With quadratic work it would take 256 times as long.
test.each([
  '<',
  '<!--',
  '<script>',
  '<p',
  '&',
  '</',
  '<a ',
  '<a href="https://a.example">b</a>',
  '<a href="https://a.example">',
  '<a href="https://a.example">b',
  `<a ${'x='.repeat(2000)}>`,
  '<a x=x x',
  '<style><',
])('the time to read %j grows with its length', (piece) => {
  const [short, long] = [65_536, 1_048_576].map((size) => msOf(piece.repeat(size / piece.length)))
  expect(long).toBeLessThan(64 * Math.max(short ?? 0, 1))
})
