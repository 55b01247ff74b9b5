/** The commands that act on the process of a daemon. The daemon runs in this process; `asked` notes the requests to stop or restart it. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import { afterEach, describe, expect, test, vi } from 'vitest'

const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

function arrange() {
  const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
  cleanups.push(dispose)
  const asked: string[] = []
  const run = sluiceWith([OFFLINE], undefined, { ...process.env } as Record<string, string>)
  const sluice = (...argv: string[]) => run(...argv, '--data-dir', dir)
  const configFile = join(dir, 'config.toml')
  /** A daemon whose program, once it is asked to end or to begin again, does what a program does. */
  const start = async (control = true, again: () => Promise<unknown> = () => start()) => {
    const options = { features: [OFFLINE], dataDir: dir, configFile, env: {}, profile: 'test', version: '0', port: 0 }
    const act = (name: string, then: () => Promise<unknown>) => () => {
      asked.push(name)
      void daemon.stop().then(then)
    }
    const acts = { stop: act('stop', async () => {}), restart: act('restart', again) }
    const daemon = await startDaemon({ ...options, ...(control && { control: acts }) })
    cleanups.push(() => daemon.stop())
    return daemon
  }
  return { dir, configFile, asked, sluice, start }
}

describe('sluice stop', () => {
  test('returns with --wait once the data directory is free', async () => {
    const { asked, sluice, start } = arrange()
    await start()
    expect(await sluice('stop', '--wait')).toMatchObject({ code: 0, out: 'stopped\n' })
    expect(asked).toEqual(['stop'])
    expect(await sluice('memory', 'list')).toMatchObject({ code: 0, out: 'no memories\n' })
  })

  test('succeeds where no daemon runs', async () => {
    const { dir, sluice } = arrange()
    expect(await sluice('stop', '--wait')).toMatchObject({ code: 0, out: `no daemon runs on ${dir}\n` })
    expect(JSON.parse((await sluice('stop', '--json')).out)).toEqual({ stopped: true, data_dir: dir })
    expect(existsSync(join(dir, 'daemon.lock'))).toBe(false)
  })

  test('fails while a daemon holds the data directory and does not answer, and waits for its end with --wait', async () => {
    const { dir, sluice } = arrange()
    const lock = lockDataDir(dir)
    cleanups.push(lock.release)
    const message = expect.stringContaining('does not answer on its control socket')
    expect(await sluice('stop')).toMatchObject({ code: 1, out: '', err: message })
    expect(await sluice('restart')).toMatchObject({ code: 1, err: message })
    const waiting = sluice('stop', '--wait')
    expect(await Promise.race([waiting, sluice('stop')])).toMatchObject({ code: 1 })
    lock.release()
    expect(await waiting).toMatchObject({ code: 0, out: `no daemon runs on ${dir}\n` })
  })

  test('leaves a program alone that embeds the daemon', async () => {
    const { sluice, start } = arrange()
    await start(false)
    expect(await sluice('stop')).toMatchObject({ code: 1, err: expect.stringContaining('Another program runs this daemon') })
  })
})

describe('sluice restart', () => {
  test('returns once the daemon answers again', async () => {
    const { asked, sluice, start } = arrange()
    await start()
    const before = JSON.parse((await sluice('status', '--json')).out)
    const { code, out } = await sluice('restart', '--json')
    expect(code).toBe(0)
    expect(asked).toEqual(['restart'])
    expect(JSON.parse(out)).toMatchObject({ running: true, started_at: expect.not.stringMatching(before.started_at) })
  })

  test('is refused while the configuration is not valid, and the daemon goes on', async () => {
    const { configFile, asked, sluice, start } = arrange()
    await start()
    writeFileSync(configFile, '[log]\nlevel = "loud"\n')
    expect(await sluice('restart')).toMatchObject({ code: 78, err: expect.stringMatching(/config\.toml:2:9: `log\.level`/) })
    expect(asked).toEqual([])
    expect(JSON.parse((await sluice('status', '--json')).out)).toMatchObject({ running: true })
  })

  test('fails at once for a daemon that ends and does not begin again', async () => {
    const { asked, sluice, start } = arrange()
    let isOver = false
    await start(true, async () => {
      isOver = true
    })
    const kill = process.kill.bind(process)
    const spy = vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
      if (pid === process.pid && signal === 0 && isOver) throw Object.assign(new Error('no such process'), { code: 'ESRCH' })
      return kill(pid, signal)
    })
    cleanups.push(() => spy.mockRestore())
    expect(await sluice('restart')).toMatchObject({ code: 1, err: expect.stringContaining('has not answered again') })
    expect(asked).toEqual(['restart'])
  })

  test('says how to start a daemon that does not run', async () => {
    const { sluice } = arrange()
    expect(await sluice('restart')).toMatchObject({ code: 1, err: expect.stringMatching(/no daemon runs on .*'sluice daemon'/) })
  })
})

describe('sluice reload', () => {
  test('says what has changed, once it is in force', async () => {
    const { configFile, sluice, start } = arrange()
    const daemon = await start()
    expect(await sluice('reload')).toMatchObject({ code: 0, out: 'the configuration is in force; nothing has changed\n' })
    writeFileSync(configFile, '[log]\nlevel = "error"\n[gateway]\nmax_connections = 77\n')
    expect(await sluice('reload')).toMatchObject({ code: 0, out: expect.stringContaining('in force') })
    expect(daemon.runtime.snapshot().gateway.max_connections).toBe(77)
  })

  test('prints the place of each mistake', async () => {
    const { configFile, sluice, start } = arrange()
    await start()
    writeFileSync(configFile, '[gateway]\nport = "x"\n')
    expect(await sluice('reload')).toMatchObject({ code: 78, err: expect.stringMatching(/config\.toml:2:8: `gateway\.port`/) })
  })
})

describe('sluice logs', () => {
  test('prints the newest lines as the daemon writes them, and each as JSON', async () => {
    const { sluice, start } = arrange()
    const { runtime } = await start()
    runtime.log.error('first', { at: 1 })
    runtime.log.error('second line', { name: 'a b' })
    expect((await sluice('logs', '-n', '2')).out).toMatch(/^\S+Z ERROR first at=1\n\S+Z ERROR second line name="a b"\n$/)
    expect(JSON.parse((await sluice('logs', '-n', '1', '--json')).out)).toMatchObject({ message: 'second line', name: 'a b' })
    expect((await sluice('logs', '-n', '0')).out).toBe('')
  })

  test('with -f prints new lines until the daemon ends', async () => {
    const { sluice, start } = arrange()
    const daemon = await start()
    daemon.runtime.log.error('before')
    const following = sluice('logs', '-f')
    const written = setInterval(() => daemon.runtime.log.error(`during ${Math.random()}`), 20)
    cleanups.push(() => clearInterval(written))
    await sluice('stop', '--wait')
    expect(await following).toMatchObject({ code: 0, out: expect.stringMatching(/before\n/), err: 'the daemon has ended its log\n' })
  })

  test('says where the log is if no daemon runs', async () => {
    const { sluice } = arrange()
    expect(await sluice('logs')).toMatchObject({ code: 1, err: expect.stringContaining('no daemon runs on') })
  })
})
