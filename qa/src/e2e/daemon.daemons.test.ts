/** The behaviour of a running daemon of a built bundle when its configuration, models, disk or load change. */
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelStep } from '@sluice/testkit/model-script'
import { startModelServer } from '@sluice/testkit/model-server'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually, post, ROOT, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

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

  test('starts after the previous daemon was killed', async () => {
    const dir = folder(offline)
    const first = await daemon('minimal', dir)
    first.kill('SIGKILL')
    await first.exited
    const next = await daemon('minimal', dir)
    expect((await fetch(`${next.url}/health`)).status).toBe(200)
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
