/** Runs the built bundle of each profile as a process. `npm test` builds the bundles first. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { ROWS } from '@sluice/sdk'
import type { ModelStep } from '@sluice/testkit/model-script'
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

type ReplaceBuild = (built: string, folder: string, nowMs: number) => void

const offline = '[provider]\nkind = "offline"\n'
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

const STANDARD_FLAGS = ['observability-metrics', 'channel-fedchat', 'channel-workchat', 'mcp', 'skills', 'schedule', 'dashboard']
const SPECIFIED_FLAGS: Record<string, readonly string[]> = {
  minimal: ['observability-metrics'],
  standard: STANDARD_FLAGS,
  full: [...STANDARD_FLAGS, 'provider-google', 'browser-native', 'hardware', 'rag-pdf', 'observability-otel', 'store-postgres'],
}

describe.each(['minimal', 'standard', 'full'])('the %s bundle', (profile) => {
  test('exists', () => expect(existsSync(bundle(profile)), `Run pnpm build:${profile} first.`).toBe(true))

  test('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8'))
    expect(await run(profile, ['--version'])).toEqual({ code: 0, stdout: `sluice ${version}\n`, stderr: '' })
  })

  test('lists every feature of the catalogue, with the build command of those left out', async () => {
    const { code, stdout } = await run(profile, ['features', '--json', '--data-dir', folder(offline)])
    expect(code).toBe(0)
    const rows = JSON.parse(stdout) as { feature: string; flag: string | null; compiled: boolean; state: string; build: string | null }[]
    expect(rows.map(({ feature }) => feature).toSorted()).toEqual(ROWS.map(([id]) => id).toSorted())
    for (const row of rows) {
      if (row.compiled) expect(row.build).toBeNull()
      else expect(row.build).toContain(`pnpm build ${profile} --features ${row.flag ?? row.feature}`)
    }
  })

  test('has the flags of its profile', async () => {
    const { stdout } = await run(profile, ['features', '--json', '--data-dir', folder(offline)])
    const rows = JSON.parse(stdout) as { flag: string | null; compiled: boolean }[]
    const compiled = rows.flatMap((row) => (row.compiled ? row.flag : null) ?? [])
    expect(new Set(compiled)).toEqual(new Set(SPECIFIED_FLAGS[profile]))
  })

  test('pairs by its printed code, answers a webhook once, and exits with 0 on SIGTERM', async () => {
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
    running.kill('SIGTERM')
    expect(await running.exited).toBe(0)
    expect(existsSync(join(dir, 'control.sock'))).toBe(false)
  })

  test('answers a route of a left-out feature with the build command', async () => {
    const running = await daemon(profile, folder(offline))
    expect(await post(`${running.url}/api/webauthn/auth/start`, {})).toMatchObject({
      status: 404,
      body: { code: 'not_compiled', feature: 'webauthn', build: `pnpm build ${profile} --features webauthn` },
    })
  })

  test('refuses a command of a left-out feature with exit code 2 and the build command', async () => {
    const { code, stderr } = await run(profile, ['plugin', 'list', '--data-dir', folder()])
    expect(code).toBe(2)
    expect(stderr).toContain(`pnpm build ${profile} --features plugins-wasm`)
  })
})

test('every command creates the data directory with mode 0700', async () => {
  const dir = join(folder(), 'made')
  await run('minimal', ['features', '--data-dir', dir])
  expect((statSync(dir).mode & 0o777).toString(8)).toBe('700')
})

test('compiled code is cached in the home folder, where the agent cannot write', async () => {
  const home = folder()
  const dir = folder(`[agent]\nworkspace = ${JSON.stringify(home)}\n[security.policy]\nauto_approve = ["file_write"]\n${offline}`)
  const env = { HOME: home, XDG_CACHE_HOME: '' }
  await run('minimal', ['pair', 'list', '--data-dir', dir], env)
  const compiled = '.cache/sluice/compiled'
  const [version = ''] = readdirSync(join(home, compiled))
  expect(readdirSync(dir)).not.toContain('cache')
  const write = (path: string) =>
    run('minimal', ['agent', '-m', `/tool file_write ${JSON.stringify({ path, content: 'x' })}`, '--data-dir', dir], env)
  expect((await write('notes.txt')).stdout).not.toContain('forbidden_paths')
  expect((await write(`${compiled}/${version}/planted`)).stdout).toContain('forbidden_paths')
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

  test('logs its start, address, turns, reloads and stop, and no message text', async () => {
    const dir = folder(offline)
    const running = await daemon('minimal', dir)
    const lines = () =>
      running
        .stderr()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { message: string } & Record<string, unknown>)
    const find = (message: string) => lines().find((line) => line.message === message)
    const { body } = await post(`${running.url}/webhook`, { message: 'the words' }, bearer(await token('minimal', dir)))
    expect(find('daemon starting')).toMatchObject({ profile: 'minimal', pid: running.pid, data_dir: dir })
    expect(find('accepting connections')).toMatchObject({ url: running.url })
    expect(find('turn finished')).toMatchObject({ turn_id: body.turn_id, took_ms: expect.any(Number), input_tokens: expect.any(Number) })
    writeFileSync(join(dir, 'config.toml'), '')
    running.kill('SIGHUP')
    await eventually(
      async () => find('configuration reloaded'),
      (line) => line !== undefined,
    )
    running.kill('SIGTERM')
    expect(await running.exited).toBe(0)
    expect(find('daemon stopped')).toMatchObject({ took_ms: expect.any(Number) })
    expect(running.stderr()).not.toContain('the words')
  })

  test('continues to work while its bundle is replaced', async () => {
    const { replaceBuild } = (await import(join(ROOT, 'scripts/replace-build.mjs'))) as { replaceBuild: ReplaceBuild }
    const built = folder()
    cpSync(join(ROOT, 'dist/minimal'), built, { recursive: true })
    const running = await daemon(built, folder(offline))
    const next = folder()
    writeFileSync(join(next, 'sluice.mjs'), 'console.log("the next build")')
    replaceBuild(next, built, Date.now())
    expect((await fetch(`${running.url}/api/openapi.json`, { headers: bearer(await token('minimal', running.dataDir)) })).status).toBe(200)
    expect((await run(built, ['--version'])).stdout).toBe('the next build\n')
  })

  test('refuses to start twice on one data directory', async () => {
    const dir = folder(offline)
    await daemon('minimal', dir)
    const second = await run('minimal', ['daemon', '--data-dir', dir, '--port', '0'])
    expect(second.code).toBe(1)
    expect(second.stderr.trim().split('\n')).toHaveLength(1)
    expect(second.stderr).toContain(dir)
  })

  test('starts after the previous daemon was killed', async () => {
    const dir = folder(offline)
    const first = await daemon('minimal', dir)
    first.kill('SIGKILL')
    await first.exited
    const next = await daemon('minimal', dir)
    expect((await fetch(`${next.url}/health`)).status).toBe(200)
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

  test('applies a valid configuration without a restart and ignores an invalid one', async () => {
    const dir = folder(offline)
    const running = await daemon('minimal', dir)
    const headers = bearer(await token('minimal', dir))
    const read = () => post(`${running.url}/webhook`, { message: '/tool file_write {"path":"a.txt","content":"x"}' }, headers)
    expect((await read()).body.response).toContain('a.txt')
    writeFileSync(join(dir, 'config.toml'), `${offline}[security.policy]\nlevel = "readonly"\n`)
    await eventually(read, ({ body }) => /read-?only/i.test(String(body.response)))
    writeFileSync(join(dir, 'config.toml'), `${offline}[security.policy]\nlevel = "nonsense"\n`)
    await eventually(
      async () => running.stderr(),
      (text) => text.includes('nonsense') || text.includes('not valid'),
    )
    expect(String((await read()).body.response)).toMatch(/read-?only/i)
  })

  test('refuses a revoked token within a second and closes its event stream', async () => {
    const dir = folder(offline)
    const running = await daemon('minimal', dir)
    const value = await token('minimal', dir)
    const stream = await fetch(`${running.url}/api/events`, { headers: bearer(value) })
    expect(stream.status).toBe(200)
    const ended = stream.text()
    const [device] = JSON.parse((await run('minimal', ['pair', 'list', '--json', '--data-dir', dir])).stdout)
    expect((await run('minimal', ['pair', 'revoke', device.id, '--data-dir', dir])).code).toBe(0)
    const revokedAt = performance.now()
    await ended.catch(() => '')
    expect(performance.now() - revokedAt).toBeLessThan(5000)
    expect((await post(`${running.url}/webhook`, { message: 'hello' }, bearer(value))).status).toBe(401)
  })

  test('lets no client read or abort a turn of another device', async () => {
    const server = await startModelServer({ apiKey: null, answer: () => ({ fault: 'hang' }) })
    cleanups.push(() => server.close())
    const dir = folder(`[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\nmodel = "test"\n`)
    const running = await daemon('minimal', dir)
    const client = async (name: string) => bearer(await token('minimal', dir, name, 'client'))
    const [ours, theirs] = [await client('ours'), await client('theirs')]
    const { body } = await post(`${running.url}/webhook`, { message: 'mine' }, { ...ours, prefer: 'respond-async' })
    const turn = `${running.url}/api/turns/${body.turn_id}`
    expect((await fetch(turn, { headers: theirs })).status).toBe(404)
    expect((await post(`${turn}/abort`, {}, theirs)).status).toBe(404)
    expect((await post(`${turn}/abort`, {}, ours)).status).toBe(200)
  })

  test('"webhook send" continues a session and honours idempotency keys', async () => {
    const dir = folder(offline)
    await daemon('minimal', dir)
    const send = async (...args: string[]) => (await run('minimal', ['webhook', 'send', ...args, '--data-dir', dir])).stdout
    await send('first', '--session', 's')
    expect(await send('second', '--session', 's')).toContain('first')
    expect(await send('once', '--idempotency-key', 'k')).toContain('answered')
    expect(await send('once', '--idempotency-key', 'k')).toContain('duplicate')
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

  test('runs a turn with two tool calls on an OpenAI-compatible server', async () => {
    const server = await startModelServer({ apiKey: null })
    cleanups.push(() => server.close())
    server.script(
      { toolCalls: [{ name: 'file_write', input: { path: 'note.txt', content: 'from the model' } }] },
      { toolCalls: [{ name: 'file_read', input: { path: 'note.txt' } }] },
      { text: 'both done' },
    )
    const dir = folder(`[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\nmodel = "test"\n`)
    const running = await daemon('minimal', dir)
    const answer = await post(`${running.url}/webhook`, { message: 'write and read' }, bearer(await token('minimal', dir)))
    expect(answer).toMatchObject({ status: 200, body: { response: 'both done' } })
    expect(readFileSync(join(dir, 'workspace', 'note.txt'), 'utf8')).toBe('from the model')
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain('from the model')
  })

  test('runs a turn on an Anthropic-compatible server', async () => {
    const server = await startModelServer({ answer: () => ({ text: 'from the other format' }) })
    cleanups.push(() => server.close())
    const dir = folder(`[provider]\nkind = "anthropic"\nbase_url = "${server.url}/v1"\nmodel = "test"\napi_key = "${server.apiKey}"\n`)
    const running = await daemon('minimal', dir)
    const answer = await post(`${running.url}/webhook`, { message: 'hello' }, bearer(await token('minimal', dir)))
    expect(answer).toMatchObject({ status: 200, body: { response: 'from the other format' } })
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

  test.each<[string, ModelStep, number]>([
    ['refuses', { status: 400, headers: {}, body: 'no' }, 502],
    ['answers 5xx', { status: 500, headers: {}, body: 'broken' }, 502],
    ['resets', { fault: 'reset' }, 502],
    ['answers garbage', { fault: 'garbage' }, 502],
  ])('answers 502 and releases the key when a provider %s', async (_fault, fault, status) => {
    let isRepaired = false
    const server = await startModelServer({ apiKey: null, answer: () => (isRepaired ? { text: 'now' } : fault) })
    cleanups.push(() => server.close())
    const dir = folder(`[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\nmodel = "test"\n[agent]\nmax_retries = 0\n`)
    const running = await daemon('minimal', dir)
    const headers = { ...bearer(await token('minimal', dir)), 'x-idempotency-key': 'k' }
    expect((await post(`${running.url}/webhook`, { message: 'hello' }, headers)).status).toBe(status)
    isRepaired = true
    expect(await post(`${running.url}/webhook`, { message: 'hello' }, headers)).toMatchObject({ status: 200, body: { response: 'now' } })
  })

  test('drains on SIGTERM under load: every turn with a 200 is stored, and the exit code is 0', async () => {
    const dir = folder(`${offline}[gateway]\nwebhook_rate_limit_per_minute = 0\n`)
    const running = await daemon('minimal', dir)
    const headers = bearer(await token('minimal', dir))
    let stopping = false
    const answered: string[] = []
    const clients = Array.from({ length: 8 }, async () => {
      while (!stopping) {
        const answer = await post(`${running.url}/webhook`, { message: 'load' }, headers).catch(() => undefined)
        if (answer?.status === 200) answered.push(String(answer.body.turn_id))
        if (!answer) return
      }
    })
    await eventually(
      async () => answered.length,
      (count) => count > 100,
    )
    running.kill('SIGTERM')
    expect(await running.exited).toBe(0)
    stopping = true
    await Promise.all(clients)
    const again = await daemon('minimal', dir)
    for (const id of [answered[0], answered.at(-1)]) {
      expect((await fetch(`${again.url}/api/turns/${id}`, { headers })).status).toBe(200)
    }
  })

  const canMount = process.platform === 'linux' && process.getuid?.() === 0
  test.runIf(canMount)('answers 503 while the disk is full, and works again after space was freed', async () => {
    const dir = folder()
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=700', 'tmpfs', dir]).status).toBe(0)
    cleanups.push(() => void spawnSync('umount', ['-l', dir]))
    writeFileSync(join(dir, 'config.toml'), `${offline}[gateway]\nwebhook_rate_limit_per_minute = 0\n`)
    const running = await daemon('minimal', dir)
    const headers = bearer(await token('minimal', dir))
    expect((await post(`${running.url}/webhook`, { message: 'hello' }, headers)).status).toBe(200)
    const filler = join(dir, 'filler')
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'])
    const big = 'x'.repeat(40_000)
    const full = await eventually(
      () => post(`${running.url}/webhook`, { message: big }, headers),
      ({ status }) => status !== 200,
    )
    expect(full).toMatchObject({ status: 503, body: { code: 'unavailable' } })
    rmSync(filler)
    expect(
      await eventually(
        () => post(`${running.url}/webhook`, { message: 'again' }, headers),
        ({ status }) => status === 200,
      ),
    ).toBeTruthy()
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
