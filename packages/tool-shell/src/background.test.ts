import { AppError, type SpawnRequest, type SpawnResult, type ToolContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { shellSection } from './config.ts'
import feature from './index.ts'

const done: SpawnResult = { exitCode: 0, signal: null, timedOut: false, stdout: 'all', stderr: '', truncated: false, sandbox: 'jail' }

/** Commands that print and end when the test says so. */
function arrange(config: object = {}) {
  const running: { request: SpawnRequest; end(result?: Partial<SpawnResult>): void }[] = []
  const host = testHost({
    spawn: (request) =>
      new Promise((resolve, reject) => {
        const end = (result: Partial<SpawnResult> = {}) => resolve({ ...done, ...result })
        if (request.signal.aborted) reject(new AppError('aborted', 'not started'))
        request.signal.addEventListener('abort', () => end({ exitCode: null, signal: 'SIGTERM' }))
        running.push({ request, end })
      }),
  })
  const parts = feature.build(host, v.parse(shellSection.schema, config))
  const call = async (name: string, input: object, more: Partial<ToolContext> = {}) => {
    const tool = parts.tools?.find((one) => one.name === name) ?? expect.fail(name)
    return tool.run(v.parse(tool.input, input), { ...toolContext(undefined, host.by), ...more })
  }
  /** Starts a command, and lets it outlive its call. */
  const startLong = async (more: Partial<ToolContext> = {}) => {
    const answer = call('shell', { command: 'make', timeout_secs: 5 }, more)
    const before = running.length
    while (running.length === before) await new Promise(setImmediate)
    const job = running.at(-1) ?? expect.fail()
    job.request.onOutput?.('stdout', 'first\n')
    await host.advance(5000)
    const text = await answer
    return { text, id: /as ([0-9a-f]+):/.exec(text)?.[1] ?? expect.fail(text), job }
  }
  const offered = () => (parts.tools ?? []).filter((tool) => tool.available?.() !== false).map(({ name }) => name)
  return { host, parts, call, startLong, running, offered }
}

describe('a command that outlives its call', () => {
  test('runs on, and gives its output and its end to shell_wait', async () => {
    const { host, call, startLong } = arrange()
    const { text, id, job } = await startLong()
    expect(text).toBe(`first\n[it still runs after 5 s, in the background, as ${id}: shell_wait waits for it, and shell_stop ends it]`)
    expect(job.request.timeoutMs).toBe(3_600_000)
    job.request.onOutput?.('stderr', 'second\n')
    const first = call('shell_wait', { id, timeout_secs: 1 })
    await host.advance(1000)
    expect(await first).toBe(`second\n[${id} still runs]`)
    const waiting = call('shell_wait', { id })
    job.request.onOutput?.('stdout', 'third\n')
    job.end({ exitCode: 3, truncated: true })
    expect(await waiting).toBe('third\n[exit code 3]')
    expect(await call('shell_wait', { id })).toBe('[exit code 3]')
  })

  test('gives the beginning and the end of its new output to each shell_wait', async () => {
    const { host, call, startLong } = arrange({ output_bytes_max: 1024 })
    const { id, job } = await startLong()
    for (const round of ['one', 'two']) {
      for (let line = 0; line < 1000; line++) job.request.onOutput?.('stdout', `${round} ${line}\n`)
      const waiting = call('shell_wait', { id, timeout_secs: 1 })
      await host.advance(1000)
      const output = await waiting
      expect(output).toMatch(new RegExp(`^${round} 0\n[^]*\n\\[… [\\d,]+ bytes were dropped …\\]\n[^]*\n${round} 999\n`))
      expect(output).toContain('to keep all of it, write it to a file')
      expect(output.length).toBeLessThan(1300)
    }
  })

  test('shell_wait ends at its time, and when the person writes', async () => {
    const { host, call, startLong } = arrange()
    const { id } = await startLong()
    const waiting = call('shell_wait', { id, timeout_secs: 9 })
    await host.advance(9000)
    expect(await waiting).toBe(`[${id} still runs]`)
    expect(await call('shell_wait', { id }, { superseded: AbortSignal.abort() })).toBe(`[${id} still runs]`)
  })

  test('is ended by shell_stop', async () => {
    const { call, startLong } = arrange()
    const { id, job } = await startLong()
    expect(await call('shell_stop', { id })).toBe('[ended by SIGTERM]')
    expect(job.request.signal.aborted).toBe(true)
  })

  test('ends with its conversation, and no other one does', async () => {
    const { parts, call, startLong } = arrange()
    const [first, second, other] = [await startLong({ session: 'a' }), await startLong({ session: 'a' }), await startLong({ session: 'b' })]
    await parts.services?.endCommands?.('a')
    expect([first, second, other].map(({ job }) => job.request.signal.aborted)).toEqual([true, true, false])
    expect(await call('shell_wait', { id: first.id }, { session: 'a' })).toMatch(
      /^There is no command .* A new conversation ends its commands/,
    )
    await parts.services?.endCommands?.('a')
  })

  test('is not known in another conversation', async () => {
    const { call, startLong } = arrange()
    const { id, job } = await startLong()
    for (const session of ['other', null]) {
      expect(await call('shell_wait', { id }, { session })).toMatch(/^There is no command .* in this conversation\. A new/)
      await call('shell_stop', { id }, { session })
    }
    expect(job.request.signal.aborted).toBe(false)
    expect(await call('shell_wait', { id: 'abc' })).toContain(`These run: ${id}.`)
  })

  test('an abort of its turn does not end it, and the end of the feature does', async () => {
    const { parts, startLong } = arrange()
    const abort = new AbortController()
    const { job } = await startLong({ signal: abort.signal })
    abort.abort()
    expect(job.request.signal.aborted).toBe(false)
    await parts.close?.()
    expect(job.request.signal.aborted).toBe(true)
  })

  test('the ninth of a conversation is ended instead', async () => {
    const { call, host, running, startLong } = arrange()
    for (let count = 0; count < 8; count++) await startLong()
    const ninth = call('shell', { command: 'make', timeout_secs: 5 })
    ninth.catch(() => undefined)
    while (running.length < 9) await new Promise(setImmediate)
    await host.advance(5000)
    await expect(ninth).rejects.toThrow('Too many commands run in the background')
    expect(running[8]?.request.signal.aborted).toBe(true)
  })
})

test.each<[string, object, number]>([
  ['without a conversation to wait in', {}, 60_000],
  ['with background_secs = 0', { background_secs: 0 }, 60_000],
  ['in a file that sets timeout_secs only', { timeout_secs: 10 }, 10_000],
])('a command is ended at its time limit %s', async (_name, config, timeoutMs) => {
  const { call, running } = arrange(config)
  const answer = call('shell', { command: 'make' }, Object.keys(config).length === 0 ? { session: null } : {})
  while (running.length === 0) await new Promise(setImmediate)
  expect(running[0]?.request.timeoutMs).toBe(timeoutMs)
  running[0]?.end({ timedOut: true, exitCode: null, signal: 'SIGTERM' })
  expect(await answer).toContain(`timed out after ${timeoutMs / 1000} s`)
})

test('the tools for the background are offered only where commands run on', () => {
  expect(arrange().offered()).toEqual(['shell', 'shell_wait', 'shell_stop'])
  expect(arrange({ timeout_secs: 10 }).offered()).toEqual(['shell'])
  expect(arrange({ timeout_secs: 10, background_secs: 60 }).offered()).toEqual(['shell', 'shell_wait', 'shell_stop'])
})
