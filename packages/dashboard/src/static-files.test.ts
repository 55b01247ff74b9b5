import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testGateways } from '@sluice/http/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { pageRoutes } from './page-routes.ts'

const gateways = testGateways()
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Sluice</title>')
  writeFileSync(join(folder, 'index.html.br'), 'page in brotli')
  writeFileSync(join(folder, 'assets/app-1a2b.js'), 'console.log(1)')
  writeFileSync(join(folder, 'assets/app-1a2b.js.br'), 'script in brotli')
  writeFileSync(join(folder, 'assets/app-1a2b.js.gz'), 'script in gzip')
  writeFileSync(join(folder, 'assets/notes.exe'), 'of no known type')
  writeFileSync(join(folder, 'secret.js'), 'not an asset')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function arrange() {
  const { request } = gateways({ snapshot: { routes: pageRoutes(() => folder) } })
  return (path: string, headers: Record<string, string> = {}, method = 'GET') => request(path, { method, headers })
}

test('the page has a strict policy and is asked for again each time', async () => {
  const answer = await arrange()('/')
  expect(await answer.text()).toBe('<!doctype html><title>Sluice</title>')
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  })
  const policy = answer.headers.get('content-security-policy') ?? ''
  for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
    expect(policy.split('; ')).toContain(rule)
  expect(policy).not.toContain('unsafe')
})

test('the menu comes with the page to a browser that was signed in as an operator at this port', async () => {
  writeFileSync(join(folder, 'menu.html'), '<!doctype html><nav></nav>')
  const get = arrange()
  const sent = async (cookie: string) => {
    const answer = await get('/', { host: 'localhost:42617', cookie })
    expect(answer.headers.get('vary')).toBe('accept-encoding, cookie')
    return (await answer.text()).includes('<nav>')
  }
  expect(await sent('a=b; sluice_role_42617=operator')).toBe(true)
  for (const other of ['sluice_role_42617=client', 'sluice_role_1=operator', 'sluice_role_42617=', 'x_sluice_role_42617=operator', ''])
    expect(await sent(other), other).toBe(false)
})

test('the styles in the page are allowed by their hash alone', async () => {
  writeFileSync(join(folder, 'index.html'), '<!doctype html><style>a { color: red }</style>')
  const policy = (await arrange()('/')).headers.get('content-security-policy') ?? ''
  // printf 'a { color: red }' | openssl dgst -sha256 -binary | base64
  expect(policy).toContain("; style-src 'self' 'sha256-LHvAPItmcc9l4w10oslyz6Nh8tFuoEH5lssCs9WdKIE='; ")
})

test('a page that has not changed is not sent again', async () => {
  const get = arrange()
  const tag = (await get('/')).headers.get('etag') ?? ''
  const again = await get('/', { 'if-none-match': `"other", W/${tag}` })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect(again.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect((await get('/', { 'if-none-match': tag, 'accept-encoding': 'br' })).status).toBe(200)
})

test('a file is sent in the best encoding that the browser accepts, and cached permanently', async () => {
  const get = arrange()
  const sent = async (accept: string) => {
    const answer = await get('/assets/app-1a2b.js', { 'accept-encoding': accept })
    return [answer.headers.get('content-encoding'), await answer.text()]
  }
  expect(await sent('gzip, deflate, br, zstd')).toEqual(['br', 'script in brotli'])
  expect(await sent('gzip;q=0.5, br;q=0')).toEqual(['gzip', 'script in gzip'])
  expect(await sent('identity')).toEqual([null, 'console.log(1)'])
  const { headers } = await get('/assets/app-1a2b.js')
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'cross-origin-resource-policy': 'same-origin',
    vary: 'accept-encoding',
  })
})

test('a build that replaces the files while the daemon runs is served whole', async () => {
  const get = arrange()
  expect((await get('/assets/app-1a2b.js')).status).toBe(200)
  rmSync(join(folder, 'assets/app-1a2b.js'))
  writeFileSync(join(folder, 'assets/app-3c4d.js'), 'console.log(2)')
  await (await get('/')).text()
  expect((await get('/assets/app-1a2b.js')).status).toBe(404)
  expect(await (await get('/assets/app-3c4d.js')).text()).toBe('console.log(2)')
})

test.each([
  '/assets/..%2Fsecret.js',
  '/assets/..%2f..%2fetc%2fpasswd',
  '/assets/app-1a2b.js.br',
  '/assets/notes.exe',
  '/assets/x.js',
  '/assets/%00.js',
])('%s is not there', async (path) => {
  const answer = await arrange()(path)
  expect(answer.status).toBe(404)
  expect(await answer.json()).toMatchObject({ code: 'not_found' })
})

test('a build without the page says how to make it', async () => {
  rmSync(folder, { recursive: true })
  const answer = await arrange()('/')
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({ error: expect.stringContaining('npm run build') })
})

test('an asset is read once, until a page finds that a build has removed it', async () => {
  const get = arrange()
  const script = async () => (await get('/assets/app-1a2b.js')).text()
  expect(await script()).toBe('console.log(1)')
  rmSync(join(folder, 'assets/app-1a2b.js'))
  expect(await script()).toBe('console.log(1)')
  await get('/')
  expect((await get('/assets/app-1a2b.js')).status).toBe(404)
  writeFileSync(join(folder, 'assets/app-1a2b.js'), 'console.log(2)')
  await get('/')
  expect(await script()).toBe('console.log(2)')
})
