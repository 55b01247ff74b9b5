/** Runs the built bundle of each profile as a process. `pnpm test:daemons` plays more. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { ROWS } from '@sluice/sdk'
import { startModelServer } from '@sluice/testkit/model-server'
import { afterEach, describe, expect, test } from 'vitest'
import { bundle, eventually, post, ROOT, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const folder = (config?: string): string => {
  const { dir, dispose } = scratch(config)
  cleanups.push(dispose)
  return dir
}

async function daemon(profile: string, dir: string, options?: Parameters<typeof startDaemon>[2]): Promise<RunningDaemon> {
  const running = await startDaemon(profile, dir, options)
  cleanups.push(async () => {
    running.kill('SIGKILL')
    await running.exited
  })
  return running
}

const offline = '[provider]\nkind = "offline"\n'
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

describe.each(['minimal', 'standard', 'full'])('the %s bundle', (profile) => {
  test('exists', () => expect(existsSync(bundle(profile)), `Run npm run build:${profile} first.`).toBe(true))

  test('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8'))
    const { code, stdout, stderr } = await run(profile, ['--version'])
    expect({ code, stderr, version: stdout.split(' ')[1]?.trim() }).toEqual({ code: 0, stderr: '', version })
    if (existsSync(join(ROOT, '.git'))) expect(stdout).toMatch(/^sluice \S+ \(commit [0-9a-f]{12}(?:, with changes)?\)\n$/)
  })

  test('lists every feature, and the build command of the missing ones', async () => {
    const { code, stdout } = await run(profile, ['features', '--json', '--data-dir', folder(offline)])
    expect(code).toBe(0)
    const rows = JSON.parse(stdout) as { feature: string; flag: string | null; compiled: boolean; state: string; build: string | null }[]
    expect(rows.map(({ feature }) => feature).toSorted()).toEqual(ROWS.map(([id]) => id).toSorted())
    for (const row of rows) {
      if (row.compiled) expect(row.build).toBeNull()
      else expect(row.build).toContain(`npm run build -- ${profile} --features ${row.flag ?? row.feature}`)
    }
  })

  test('pairs, answers a webhook once, names the build command of a left-out route, and exits with 0 on SIGTERM', async () => {
    const dir = folder(offline)
    const running = await daemon(profile, dir)
    const status = JSON.parse((await run(profile, ['status', '--json', '--data-dir', dir])).stdout)
    expect(status).toMatchObject({ running: true, pid: running.pid, url: running.url, profile })
    expect((await fetch(`${running.url}/health`)).status).toBe(200)
    const code = /pairing code \(one use\): (\S+)/.exec(running.stdout())?.[1] ?? ''
    const paired = await post(`${running.url}/pair`, {}, { 'x-pairing-code': code })
    expect(paired).toMatchObject({ status: 200, body: { paired: true } })
    expect((await post(`${running.url}/pair`, {}, { 'x-pairing-code': code })).status).toBe(403)
    const headers = { ...bearer(String(paired.body.token)), 'x-idempotency-key': 'one', 'x-session-id': 's' }
    const answer = await post(`${running.url}/webhook`, { message: 'good morning' }, headers)
    expect(answer).toMatchObject({ status: 200, body: { session_id: 's', response: expect.stringContaining('good morning') } })
    expect(await post(`${running.url}/webhook`, { message: 'good morning' }, headers)).toMatchObject({
      status: 200,
      body: { status: 'duplicate', idempotent: true, message: expect.any(String) },
    })
    expect(await post(`${running.url}/api/webauthn/auth/start`, {})).toMatchObject({
      status: 404,
      body: { code: 'not_compiled', feature: 'webauthn', build: `npm run build -- ${profile} --features webauthn` },
    })
    running.kill('SIGTERM')
    expect(await running.exited).toBe(0)
    expect(existsSync(join(dir, 'control.sock'))).toBe(false)
  })

  test('refuses a command of a left-out feature with exit code 2 and the build command', async () => {
    const { code, stderr } = await run(profile, ['plugin', 'list', '--data-dir', folder()])
    expect(code).toBe(2)
    expect(stderr).toContain(`npm run build -- ${profile} --features plugins-wasm`)
  })
})

test('every command creates the data directory with mode 0700', async () => {
  const dir = join(folder(), 'made')
  await run('minimal', ['features', '--data-dir', dir])
  expect((statSync(dir).mode & 0o777).toString(8)).toBe('700')
})

describe('the daemon', () => {
  test('prints curl commands that get a reply', async () => {
    const running = await daemon('full', folder(offline))
    await eventually(
      async () => running.stdout(),
      (text) => text.includes('"message"'),
    )
    const lines = running.stdout().split('\n')
    const script = lines.slice(lines.indexOf('try it:') + 1).join('\n')
    const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
    expect(JSON.parse(stdout)).toMatchObject({ response: expect.stringContaining('hello'), turn_id: expect.any(String) })
  })

  test('refuses to start twice on one data directory', async () => {
    const dir = folder(offline)
    await daemon('minimal', dir)
    const second = await run('minimal', ['daemon', '--data-dir', dir, '--port', '0'])
    expect(second.code).toBe(1)
    expect(second.stderr.trim().split('\n')).toHaveLength(1)
    expect(second.stderr).toContain(dir)
  })

  test('reports a port in use in one line', async () => {
    const server = createServer()
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    cleanups.push(() => new Promise<void>((closed) => void server.close(() => closed())))
    const { port } = server.address() as { port: number }
    const { code, stderr } = await run('minimal', ['daemon', '--data-dir', folder(offline), '--port', String(port)])
    expect(code).toBe(1)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(stderr).toContain(`127.0.0.1:${port}`)
  })

  test('exits with 78 for an unknown key and names line, key and nearest known key', async () => {
    const { code, stderr } = await run('minimal', ['daemon', '--data-dir', folder('[gateway]\nhost = "127.0.0.1"\nprot = 1\n')])
    expect(code).toBe(78)
    expect(stderr).toMatch(/config\.toml:3:1: .*prot.*port/)
  })

  test('completes a turn that was accepted with 202 after SIGKILL and a restart', async () => {
    const server = await startModelServer({ apiKey: null })
    cleanups.push(() => server.close())
    server.script({ fault: 'hang' }, { text: 'after the restart' })
    const dir = folder(`[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\nmodel = "test"\n`)
    const first = await daemon('minimal', dir)
    const headers = bearer(await token('minimal', dir))
    const accepted = await post(`${first.url}/webhook`, { message: 'remember me' }, { ...headers, prefer: 'respond-async' })
    expect(accepted.status).toBe(202)
    await eventually(
      async () => server.requests.length,
      (count) => count > 0,
    )
    first.kill('SIGKILL')
    await first.exited
    const next = await daemon('minimal', dir)
    const turn = () =>
      fetch(`${next.url}${accepted.body.status_url}`, { headers }).then((response) => response.json() as Promise<Record<string, unknown>>)
    expect(await eventually(turn, ({ status }) => status === 'done')).toMatchObject({ response: 'after the restart' })
  })

  test('bundles the modules that are loaded on first use', async () => {
    const dir = folder(`${offline}[observability]\nbackend = "textmetrics"\n`)
    const running = await daemon('minimal', dir)
    const value = await token('minimal', dir)
    await post(`${running.url}/webhook`, { message: 'count me' }, bearer(value))
    const metrics = await fetch(`${running.url}/metrics`)
    expect(metrics.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await metrics.text()).toMatch(/sluice_http_requests_total\{[^}]*route="\/webhook"[^}]*\} 1/)
    const document = await fetch(`${running.url}/api/openapi.json`, { headers: bearer(value) })
    expect(await document.json()).toMatchObject({ openapi: '3.1.0', paths: { '/webhook': { post: {} } } })
    const socket = new WebSocket(`${running.url.replace('http', 'ws')}/ws/chat`, ['sluice.v1', `bearer.${value}`])
    const frames: { type: string; full_response?: string }[] = []
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    socket.addEventListener('open', () => socket.send(JSON.stringify({ type: 'message', content: 'over a socket' })))
    await eventually(
      async () => frames.find(({ type }) => type === 'done')?.full_response ?? '',
      (text) => text.includes('over a socket'),
    )
    socket.close()
    expect((await run('minimal', ['config', 'set', 'agent.max_iterations', '7', '--data-dir', dir])).code).toBe(0)
    expect((await run('minimal', ['config', 'get', 'agent.max_iterations', '--data-dir', dir])).stdout).toBe('7\n')
    expect(JSON.parse((await run('minimal', ['config', 'schema'])).stdout)).toMatchObject({ type: 'object' })
  })
})

describe('a custom build', () => {
  test('contains no code of left-out packages', () => {
    const scratchDir = join(ROOT, '.cache', 'e2e')
    mkdirSync(scratchDir, { recursive: true })
    const profile = join(scratchDir, 'tiny.ts')
    writeFileSync(
      profile,
      "import { main } from '@sluice/cli'\nimport offline from '@sluice/provider-offline'\n\nawait main({ profile: 'tiny', features: [offline] })\n",
    )
    cleanups.push(() => rmSync(join(ROOT, 'dist', 'tiny'), { recursive: true, force: true }))
    cleanups.push(() => rmSync(scratchDir, { recursive: true, force: true }))
    const built = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs'), profile], { encoding: 'utf8' })
    expect(built.status, built.stderr).toBe(0)
    const textOf = (name: string) =>
      readdirSync(join(ROOT, 'dist', name))
        .filter((file) => file.endsWith('.mjs'))
        .map((file) => readFileSync(join(ROOT, 'dist', name, file), 'utf8'))
        .join('\n')
    const marks = ['http_request_duration_seconds', 'allowed_domains', 'env_passthrough', 'anthropic-version']
    for (const mark of marks) {
      expect(textOf('minimal').includes(mark), `minimal has ${mark}`).toBe(true)
      expect(textOf('tiny').includes(mark), `tiny has ${mark}`).toBe(false)
    }
  })

  test('refuses --features without a package, and names them', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs'), '--features', 'hardware,nonsense'], {
      encoding: 'utf8',
    })
    expect(status).toBe(2)
    expect(stderr).toMatch(/nonsense|hardware-boards/)
  })
})

test('the generated pages of docs/ are up to date', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/docs.mjs'), '--check'], { encoding: 'utf8' })
  expect(status, stderr).toBe(0)
})
