/** `sluice doctor` and `sluice status` next to a daemon, and next to one that does not let them in. */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import { afterEach, expect, test } from 'vitest'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

/** A feature whose check says which process ran it. */
const checked = (where: string) =>
  defineFeature({
    id: 'x-checked',
    build: () => ({
      providers: [{ kinds: ['offline'], load: async () => ({}) as never }],
      check: async () => [{ status: 'ok', detail: `checked in ${where}` }],
    }),
  })

function arrange() {
  const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
  cleanups.push(dispose)
  const run = sluiceWith([checked('the command')])
  return { dir, sluice: (...argv: string[]) => run(...argv, '--data-dir', dir) }
}

const named = (checks: readonly { readonly check: string }[], name: string) => checks.filter(({ check }) => check === name)

test('doctor gets the checks of the store and of the features from the daemon', async () => {
  const { dir, sluice } = arrange()
  const alone = JSON.parse((await sluice('doctor', '--json')).out)
  expect(named(alone, 'x-checked')).toMatchObject([{ detail: 'checked in the command' }])
  const options = { dataDir: dir, configFile: join(dir, 'config.toml'), env: {}, profile: 'test', version: '0', port: 0 }
  cleanups.push((await startDaemon({ ...options, features: [checked('the daemon')] })).stop)
  const next = JSON.parse((await sluice('doctor', '--json')).out)
  expect(named(next, 'x-checked')).toMatchObject([{ detail: 'checked in the daemon' }])
  expect(named(next, 'daemon')).toContainEqual(expect.objectContaining({ status: 'ok', detail: 'it runs and answers' }))
  for (const name of ['store', 'memory', 'audit log', 'config', 'workspace']) expect(named(next, name)).toEqual(named(alone, name))
})

test('a daemon that refuses the caller is not reported as stopped', async () => {
  const { dir, sluice } = arrange()
  cleanups.push(lockDataDir(dir).release)
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/health' ? 200 : 403
    response.end(request.url === '/health' ? '{}' : '{"error":"Only an operator may do this","code":"forbidden"}')
  })
  await new Promise<void>((resolve) => server.listen(join(dir, 'control.sock'), resolve))
  cleanups.push(() => server.close())
  expect(await sluice('status')).toEqual({ code: 1, out: '', err: 'sluice: Only an operator may do this\n' })
  expect((await sluice('doctor')).out).toContain('Only an operator may do this')
  expect(existsSync(join(dir, 'sluice.db'))).toBe(false)
})

test('a daemon that cannot give its status, such as without its database, is not reported as stopped', async () => {
  const { dir, sluice } = arrange()
  cleanups.push(lockDataDir(dir).release)
  const server = createServer((request, response) => {
    response.statusCode = request.url === '/health' ? 200 : 503
    response.end(request.url === '/health' ? '{"status":"degraded"}' : '{"error":"The store cannot be read now","code":"unavailable"}')
  })
  await new Promise<void>((resolve) => server.listen(join(dir, 'control.sock'), resolve))
  cleanups.push(() => server.close())
  const status = await sluice('status')
  expect(status.code).toBe(1)
  expect(status.out).toContain('failing: the daemon runs, but cannot work. The store cannot be read now')
  const found = JSON.parse((await sluice('doctor', '--json')).out)
  expect(named(found, 'daemon')).toMatchObject([{ status: 'fail', detail: 'it runs, but cannot work: The store cannot be read now' }])
})
