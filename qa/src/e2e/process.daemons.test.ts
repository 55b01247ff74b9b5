/** A daemon as a process of its own is stopped and restarted by the commands of its bundle. */
import { afterEach, expect, test } from 'vitest'
import { run, scratch, startDaemon } from '../daemons/bundle.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

test('sluice restart begins the same process again with its options, and sluice stop --wait ends it', { timeout: 120_000 }, async () => {
  const { dir, dispose } = scratch('[log]\nlevel = "info"\nformat = "json"\n')
  cleanups.push(dispose)
  const daemon = await startDaemon('full', dir)
  cleanups.push(() => daemon.kill('SIGKILL'))
  const sluice = async (...args: string[]) => {
    const { code, stdout, stderr } = await run('full', [...args, '--data-dir', dir, '--json'])
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }
  const before = await sluice('status')
  const after = await sluice('restart')
  expect(after).toMatchObject({ running: true, pid: before.pid })
  expect(after.started_at).not.toBe(before.started_at)
  // The new program took `--port 0` over, and its log goes where that of the first went.
  expect(daemon.stderr().match(/"message":"daemon stopped"/g)).toHaveLength(1)
  expect(daemon.stderr().match(/"message":"daemon starting"/g)).toHaveLength(2)
  expect((await fetch(`${after.url}/health`)).status).toBe(200)
  expect(await sluice('stop', '--wait')).toEqual({ stopped: true, data_dir: dir })
  expect(await daemon.exited).toBe(0)
})
