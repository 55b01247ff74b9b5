import { AppError, type CompanionRequest } from '@sluice/sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ECHO_COMPANION_MARK, ECHO_COMPANION_URL } from '../testing/echo-companion.ts'
import { startCompanion } from './companion.ts'

async function start(does: string, more: Partial<CompanionRequest> = {}) {
  const messages: unknown[] = []
  const ended = Promise.withResolvers<string>()
  const companion = await startCompanion({
    module: ECHO_COMPANION_URL,
    mark: ECHO_COMPANION_MARK,
    init: { does },
    onMessage: (message) => void messages.push(message),
    onEnd: ended.resolve,
    ...more,
  })
  return { companion, messages, ended: ended.promise }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('startCompanion', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('delivers the first and later messages as structured clones', async () => {
    const { companion, messages } = await start('echo')
    const sent = { at: new Date(0), far: Number.POSITIVE_INFINITY, set: new Set([1]) }
    companion.send(sent)
    await expect.poll(() => messages).toEqual([expect.objectContaining({ init: { does: 'echo' } }), sent])
    await companion.close()
  })

  test("passes on neither the daemon's environment nor its options", async () => {
    vi.stubEnv('SVC_COMPANION_CANARY', 'canary')
    const { companion, messages } = await start('echo')
    await expect.poll(() => messages).toHaveLength(1)
    const [{ env, args }] = messages as [{ env: string[]; args: string[] }]
    expect(env.filter((name) => !name.startsWith('NODE_CHANNEL'))).toEqual([])
    expect(args).toEqual([])
    await companion.close()
  })

  test('ends the companion when its channel closes; close is idempotent', async () => {
    const { companion, ended, messages } = await start('echo')
    await expect.poll(() => messages).toHaveLength(1)
    await Promise.all([companion.close(), companion.close()])
    expect(await ended).toBe('it ended with code 0')
    expect(isAlive(companion.pid)).toBe(false)
    expect(() => companion.send({})).toThrow(AppError)
  })

  test('kills a companion that does not end with its channel', async () => {
    const { companion, messages, ended } = await start('stays')
    await expect.poll(() => messages).toHaveLength(1)
    await companion.close()
    expect(await ended).toBe('it was ended by SIGKILL')
    expect(isAlive(companion.pid)).toBe(false)
  })

  test('reports a companion that ends by itself once', async () => {
    const { ended, companion } = await start('ends')
    expect(await ended).toBe('it ended with code 3')
    await companion.close()
  })

  test('refuses messages over 64 KiB, and any while it does not read', async () => {
    const { companion } = await start('echo')
    expect(() => companion.send('x'.repeat(65_536))).toThrow(expect.objectContaining({ code: 'too_large' }))
    process.kill(companion.pid, 'SIGSTOP')
    const flood = () => {
      for (let count = 0; count < 1000; count++) companion.send('x'.repeat(60_000))
    }
    expect(flood).toThrow(expect.objectContaining({ code: 'unavailable' }))
    process.kill(companion.pid, 'SIGKILL')
    await companion.close()
  })

  test('reports a module that does not exist as ended', async () => {
    const { ended } = await start('echo', { module: new URL('./nowhere.ts', ECHO_COMPANION_URL).href })
    expect(await ended).toBe('it ended with code 1')
  })
})
