/** The commands of features next to a running daemon: they run in the daemon, as they run without one. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { startDaemon } from '@sluice/daemon'
import { scratch } from '@sluice/qa/daemons/bundle'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { AppError, type Command, type CommandContext, defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const section = {
  path: 'x_boards',
  schema: v.object({ boards: v.optional(v.array(v.strictObject({ board: v.string() })), []) }),
} as const

/** The runtime requires a provider. */
const providers = [{ kinds: ['offline'], load: async () => ({}) as never }]

/** A feature with the command `boards`. */
const boards = (run: Command['run']) =>
  defineFeature({ id: 'x-boards', section, build: () => ({ commands: [{ name: 'boards', summary: '', run }], providers }) })

async function arrange(run: Command['run'], stdin = piped('')) {
  const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
  cleanups.push(dispose)
  // The command line has the feature without its code, so that it must run in the daemon.
  const refuse = async (): Promise<number> => expect.unreachable('the command runs next to the daemon')
  const options = { dataDir: dir, configFile: join(dir, 'config.toml'), env: {}, profile: 'test', version: '0', port: 0 }
  const daemon = await startDaemon({ ...options, features: [boards(run)] })
  cleanups.push(daemon.stop)
  const sluice = (...argv: string[]) => sluiceWith([boards(refuse)], stdin)(...argv, '--data-dir', dir)
  return { dir, daemon, sluice }
}

const printWhetherItAsks: Command['run'] = async ({ ask, print }) => {
  print(String(ask))
  return 0
}

const terminal = (): PassThrough & { readonly isTTY: true } => Object.assign(new PassThrough(), { isTTY: true as const })

describe('with a daemon, a command of a feature', () => {
  test('prints on both streams, gets its arguments and the folder of its caller, and ends with its exit code', async () => {
    const { sluice } = await arrange(async ({ args, cwd, json, print, warn }) => {
      print(JSON.stringify({ args, cwd, json }))
      warn('careful')
      return 7
    })
    const out = `${JSON.stringify({ args: ['add', '--port', './x'], cwd: process.cwd(), json: true })}\n`
    expect(await sluice('boards', 'add', '--port', './x', '--json')).toEqual({ code: 7, out, err: 'careful\n' })
  })

  test('fails with its error, and says nothing of a bug', async () => {
    const failure: { error: Error } = { error: new AppError('conflict', 'The port is in use', { fields: { port: '/dev/x' } }) }
    const { sluice } = await arrange(async () => {
      throw failure.error
    })
    expect(await sluice('boards')).toEqual({ code: 1, out: '', err: 'sluice: The port is in use\n' })
    const { err } = await sluice('boards', '--json')
    expect(JSON.parse(err)).toEqual({ error: 'The port is in use', code: 'conflict', port: '/dev/x' })
    failure.error = new Error('secret detail')
    expect(await sluice('boards')).toEqual({ code: 1, out: '', err: 'sluice: Internal error; the log has the cause\n' })
  })

  test('asks its questions at the terminal of its caller', async () => {
    const stdin = terminal()
    stdin.end('one\ntwo\n')
    const { sluice } = await arrange(async ({ ask, print }) => {
      print(JSON.stringify([await ask?.('first?'), await ask?.('second?'), (await ask?.('third?')) ?? null]))
      return 0
    }, stdin)
    expect(await sluice('boards')).toEqual({ code: 0, out: '["one","two",null]\n', err: 'first?\nsecond?\nthird?\n' })
  })

  test.each(['a pipe', '--json'])('asks nothing with %s', async (how) => {
    const { sluice } = await arrange(printWhetherItAsks, how === '--json' ? terminal() : piped('one\n'))
    expect(await sluice('boards', ...(how === '--json' ? ['--json'] : []))).toMatchObject({ code: 0, out: 'undefined\n' })
  })

  test('is aborted by an interrupt, and still prints and ends by itself', async () => {
    const { sluice } = await arrange(async ({ signal, ask, print }) => {
      process.emit('SIGINT')
      expect(await ask?.('go on?')).toBeUndefined()
      print(`stopped: ${signal.aborted}`)
      return 130
    }, terminal())
    expect(await sluice('boards')).toMatchObject({ code: 130, out: 'stopped: true\n' })
  })

  test('adds to the configuration of the daemon, which reloads it while the command goes on', async () => {
    const { dir, daemon, sluice } = await arrange(
      async ({ addToConfig, ask, print }) => {
        await addToConfig({ list: 'x_boards.boards', entry: { board: 'a' } })
        await daemon.reload()
        print(`${await ask?.('done?')}`)
        return 0
      },
      Object.assign(piped('yes\n'), { isTTY: true as const }),
    )
    expect(await sluice('boards')).toMatchObject({ code: 0, out: 'yes\n' })
    expect(readFileSync(join(dir, 'config.toml'), 'utf8')).toContain('[[x_boards.boards]]\nboard = "a"')
  })

  test('is refused over TCP, also for an operator', async () => {
    const { daemon, sluice } = await arrange(async () => 0)
    const { token } = JSON.parse((await sluice('pair', 'token', '--json')).out) as { readonly token: string }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ words: ['boards'], cwd: '/' })
    const response = await fetch(`${daemon.url}/api/commands`, { method: 'POST', headers, body })
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'forbidden' }])
  })

  test('says that no feature has it', async () => {
    const { sluice } = await arrange(async () => 0)
    expect(await sluice('bords', 'list')).toMatchObject({ code: 1, err: expect.stringContaining("has the command 'bords list'") })
  })
})

test('a caller that goes away aborts the command', async () => {
  const ended = Promise.withResolvers<boolean>()
  const begun = Promise.withResolvers<void>()
  const run = async ({ signal }: CommandContext): Promise<number> => {
    begun.resolve()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    ended.resolve(signal.aborted)
    return 0
  }
  const { dir } = await arrange(run)
  const { connectHttp } = await import('./api/transport.ts')
  const transport = await connectHttp({ socketPath: join(dir, 'control.sock') })
  const response = await transport.send({ method: 'POST', path: '/api/commands', body: { words: ['boards'], cwd: '/' } })
  expect(response.status).toBe(200)
  await begun.promise
  await transport.close()
  expect(await ended.promise).toBe(true)
})

test('a daemon that holds the lock and does not answer fails the command', async () => {
  const { dir, sluice } = await arrange(async () => 0)
  renameSync(join(dir, 'control.sock'), join(dir, 'elsewhere.sock'))
  writeFileSync(join(dir, 'control.sock'), '')
  expect(await sluice('boards')).toMatchObject({ code: 1, err: expect.stringContaining('does not answer on its control socket') })
}, 15_000)
