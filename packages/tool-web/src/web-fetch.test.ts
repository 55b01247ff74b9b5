import { AppError, type PublicRequest, STANDINGS, type Tool, type ToolReport } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { articleText } from './article-text.ts'
import { webSection } from './config.ts'
import feature from './index.ts'

const PARAGRAPH = 'The quick brown fox jumps over the lazy dog, and the dog sleeps on while the fox, which is quick, runs away. '
const PAGE = `<!doctype html><html lang="en"><head><title>About  foxes</title><style>p { color: red }</style></head><body>
<nav><a href="/home">Home</a> <a href="/login">Log in</a></nav>
<article><h1>About foxes</h1><p>${PARAGRAPH.repeat(4)}</p>
<h2>Where</h2><ul><li>In the <b>wood</b></li><li>On <a href="../map?x=1&amp;y=2#here">the map</a></li></ul>
<pre>code  with
  spaces</pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<p>${PARAGRAPH.repeat(4)}</p><script>steal()</script></article><footer>Imprint</footer></body></html>`

const html = (body: string, init: ResponseInit = {}) =>
  new Response(body, { ...init, headers: { 'content-type': 'text/html; charset=utf-8', ...init.headers } })

function arrange(answer: () => Response, { config = {}, ...overrides }: TestHostOverrides & { config?: object } = {}) {
  const requests: { url: string; init: PublicRequest }[] = []
  const publicFetch = async (url: string, init: PublicRequest) => {
    requests.push({ url, init })
    return answer()
  }
  const host = testHost({ publicFetch, ...overrides })
  const tool = feature.build(host, v.parse(webSection.schema, config)).tools?.find(({ name }) => name === 'web_fetch') as Tool
  const reports: ToolReport[] = []
  const context = { ...toolContext(undefined, host.by), report: (given: ToolReport) => reports.push(given) }
  const run = async (input: object, more: object = {}) =>
    tool.run(v.parse(tool.input, { url: 'https://a.example/fox/page.html', ...input }), { ...context, ...more })
  return { run, tool, requests, reports, host }
}

describe('web_fetch', () => {
  test('shows the article of a page as text with its links, and nothing around it', async () => {
    const { run, tool, requests } = arrange(() => html(PAGE))
    const text = await run({})
    expect(text).toMatch(/^# About foxes\n/)
    expect(text).toContain('## Where')
    expect(text).toContain('- In the wood\n- On [the map](https://a.example/map?x=1&y=2#here)')
    expect(text).toContain('a | b |\n1 | 2 |')
    expect(text).toContain('code  with\n  spaces')
    for (const left of ['Log in', 'Imprint', 'steal', 'color']) expect(text).not.toContain(left)
    expect(requests[0]).toMatchObject({ url: 'https://a.example/fox/page.html', init: { responseBytesMax: 4_194_304 } })
    const { address, untrusted } = tool
    expect(address?.({ url: 'https://x.example' })).toBe('https://x.example')
    expect(typeof untrusted === 'function' && untrusted({ url: 'https://x.example' }, testHost().by)).toBe('web_fetch https://x.example')
  })

  test.each([
    ['text/plain', 'a <b> c', 'a <b> c'],
    ['application/json', '{"a":1}', '{"a":1}'],
    ['', '<!doctype html><title>T</title><p>words', '# T\n\nwords'],
    ['text/html', '', '[no text]'],
    ['text/html; charset=unknown-9', '<p>ä', 'ä'],
  ])('reads %s', async (type, body, text) => {
    expect(await arrange(() => new Response(Buffer.from(body), { headers: { 'content-type': type } })).run({})).toBe(text)
  })

  test('reads another charset, and a PDF where the build can', async () => {
    const latin = () =>
      new Response(Uint8Array.of(0x3c, 0x70, 0x3e, 0xe4), { headers: { 'content-type': 'text/html; charset=iso-8859-1' } })
    expect(await arrange(latin).run({})).toBe('ä')
    const pdf = () => new Response('%PDF-1.7', { headers: { 'content-type': 'application/pdf' } })
    await expect(arrange(pdf).run({})).rejects.toThrow('PDF, which this build cannot read')
    expect(await arrange(pdf, { services: { pdfText: async () => ['one', 'two'] } }).run({})).toBe('one\n\ntwo')
  })

  test.each([
    ['text/html', '<meta charset="windows-1251"><p>', [0xcf, 0xf0, 0xe8], 'При'],
    ['text/html', '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><p>', [0x93, 0x8c, 0x8b, 0x9e], '東京'],
    ['application/xhtml+xml', '<?xml version="1.0" encoding="ISO-8859-1"?><p>', [0xe4], 'ä'],
    ['text/html; charset=utf-8', '<meta charset="windows-1251"><p>', [0xc3, 0xa4], 'ä'],
    ['text/html', '<meta charset="utf-16"><p>', [0xc3, 0xa4], 'ä'],
  ])('reads the charset that a page of type %s names: %s', async (type, start, bytes, text) => {
    const body = Buffer.concat([Buffer.from(start), Buffer.from(bytes)])
    expect(await arrange(() => new Response(body, { headers: { 'content-type': type } })).run({})).toBe(text)
  })

  test('reads UTF-16 with a byte order mark', async () => {
    const body = Buffer.from('\ufeff<p>Grüße', 'utf16le')
    expect(await arrange(() => new Response(body, { headers: { 'content-type': 'text/html' } })).run({})).toBe('Grüße')
    expect(await arrange(() => new Response(body.swap16(), { headers: { 'content-type': 'text/html' } })).run({})).toBe('Grüße')
  })

  test('refuses content other than text', async () => {
    const picture = () => new Response(Uint8Array.of(1, 2), { headers: { 'content-type': 'image/png' } })
    await expect(arrange(picture).run({})).rejects.toThrow('2 bytes of image/png, not to text')
    await expect(arrange(() => new Response(Uint8Array.of(97, 0))).run({})).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('says the status of an error, and reports it as a failure', async () => {
    const { run, reports } = arrange(() => new Response('gone', { status: 404, statusText: 'Not Found' }))
    expect(await run({})).toBe('[HTTP 404 Not Found]\ngone')
    expect(reports).toEqual([{ failed: true, data: 'gone' }])
  })

  test('shows a long page in parts', async () => {
    const long = () => new Response('abcdefghij'.repeat(3000), { headers: { 'content-type': 'text/plain' } })
    expect(await arrange(long).run({})).toMatch(/j\n\[Characters 0-19999 of 30000; read on with offset=20000]$/)
    expect(await arrange(long).run({ offset: 29_995 })).toBe('fghij')
  })

  test.each(STANDINGS)('for %s', async (standing) => {
    const { run, tool, requests, host } = arrange(() => new Response('words'))
    const by = { ...host.by, standing, signal: new AbortController().signal }
    const checked = (async () => tool.precheck?.({ url: 'https://a.example', offset: 0 }, by))()
    if (['stranger', 'unverified'].includes(standing)) {
      await expect(checked).rejects.toMatchObject({ code: 'forbidden' })
      await expect(run({}, { standing })).rejects.toMatchObject({ code: 'forbidden' })
      expect(requests).toEqual([])
    } else {
      await checked
      expect(await run({}, { standing })).toBe('words')
    }
  })

  test.each([
    ['its own refusal', 1, 'forbidden', [{ readNothing: true }]],
    ['a refusal after a redirect', 2, 'forbidden', []],
    ['an error of the server', 1, 'upstream', []],
  ] as const)('says whether %s has words of others', async (_name, hops, code, reported) => {
    const publicFetch = async (url: string, init: PublicRequest) => {
      for (let hop = 0; hop < hops; hop++) init.admit?.(new URL(url))
      throw new AppError(code, 'not here')
    }
    const { run, reports } = arrange(() => html(PAGE), { publicFetch })
    await expect(run({})).rejects.toMatchObject({ code })
    expect(reports).toEqual(reported)
  })

  test('is not offered when it is turned off', async () => {
    const { run, tool } = arrange(() => html('x'), { config: { fetch: false } })
    expect(tool.available?.()).toBe(false)
    await expect(run({})).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('a page that nests without end ends the reading, and not the daemon', async () => {
    const { run, host } = arrange(() => html(`${'<div>'.repeat(200_000)}end`))
    let outcome: unknown
    const ended = run({}).then(
      (text) => {
        outcome = text
      },
      (error: unknown) => {
        outcome = error
      },
    )
    while (outcome === undefined) {
      await new Promise(setImmediate)
      await host.advance(1000)
    }
    await ended
    expect(outcome).toMatchObject({ code: 'invalid_request', message: 'The page cannot be read within 10 s' })
  })
})

test('a page without an article is shown as a whole', async () => {
  const page = '<title>List</title><ul><li><a href="a">A</a></li><li><a href="mailto:x@y.z">Mail</a> <a href="#top">Top</a></li></ul>'
  expect(await articleText({ html: page, url: 'https://a.example/b/' })).toBe('# List\n\n- [A](https://a.example/b/a)\n- Mail Top')
  expect(await articleText({ html: '', url: 'https://a.example/' })).toBe('')
})

describe('the text of a page', () => {
  test.each([
    [
      'steps with their numbers',
      '<ol start="3"><li><p>Get it</p><ul><li>here</li><li>there</li></ul></li><li>Run it</li></ol>',
      '3. Get it\n   - here\n   - there\n4. Run it',
    ],
    ['code as it is', '<pre><code>if x:\n one\n\n\n\n  two\n</code></pre>', '```\nif x:\n one\n\n\n\n  two\n```'],
    ['a cell on its line', '<table><tr><td><p>a</p><p>b</p></td><td>c</td></tr></table>', 'a b | c |'],
    ['a card that is a link', '<a href="/x"><h3>Title</h3><p>words</p></a>', '[Title words](https://a.example/x)'],
    [
      'links from the base of the page',
      '<html><head><base href="/docs/"></head><body><p><a href="x">x</a></p></body></html>',
      '[x](https://a.example/docs/x)',
    ],
    [
      'what a page without text says of itself',
      '<meta name="description" content="A  shop"><div></div><script>1</script>',
      'A shop\n\n[This page shows its text only to a browser that runs its scripts]',
    ],
  ])('shows %s', async (_what, html, text) => {
    expect(await articleText({ html, url: 'https://a.example/b/c' })).toBe(text)
  })
})
