import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { RunBare } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { afterEach, expect, test, vi } from 'vitest'
import { container } from './container.ts'
import { givenEnv } from './engine-env.ts'
import { runOptions } from './run-options.ts'

const signal = new AbortController().signal
const folders: string[] = []
afterEach(() => {
  vi.unstubAllEnvs()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A `docker` that answers by its first words; what it was asked stands in `asked`. */
function engine(answers: Readonly<Record<string, { code: number; text: string }>>) {
  const folder = mkdtempSync(join(tmpdir(), 'container-'))
  folders.push(folder)
  const cases = Object.entries(answers).map(
    ([words, { code, text }]) => `"${words}"*) echo '${text}' >&${code === 0 ? 1 : 2}; exit ${code};;`,
  )
  writeFileSync(join(folder, 'docker'), `#!/bin/sh\ncase "$*" in ${cases.join(' ')} esac\n`)
  chmodSync(join(folder, 'docker'), 0o755)
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  const asked: string[] = []
  const run: RunBare = (command, limit) => {
    asked.push(command.args.join(' '))
    return runBare(command, limit)
  }
  return { asked, run, sandbox: container({ engine: 'docker', image: 'img:1' }) }
}

const UP = { version: { code: 0, text: '20.10.24' }, 'image inspect': { code: 0, text: 'sha256:1' } }

test('an engine that is down is told with what to do, and may come up later', async () => {
  const { sandbox, run } = engine({ version: { code: 1, text: 'Cannot connect to the Docker daemon' } })
  vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1')
  expect(await sandbox.probe(signal, run)).toEqual({
    available: false,
    isInstalled: true,
    detail: 'docker does not answer (Cannot connect to the Docker daemon): start its engine, and let this user use it',
  })
})

test('an engine that this user may not use is no sandbox to wait for', async () => {
  const { sandbox, run } = engine({ version: { code: 1, text: 'permission denied while trying to connect' } })
  vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1')
  const found = await sandbox.probe(signal, run)
  expect(found).toMatchObject({ available: false, detail: expect.stringContaining('let this user use it') })
  expect(found.isInstalled).toBeUndefined()
})

test('an image that is missing is named with the command that pulls it, and is not pulled', async () => {
  const { sandbox, run, asked } = engine({ ...UP, 'image inspect': { code: 1, text: 'No such image' } })
  expect(await sandbox.probe(signal, run)).toEqual({ available: false, detail: "the image 'img:1' is not here: docker pull img:1" })
  expect(asked.some((words) => words.startsWith('pull') || words.startsWith('run'))).toBe(false)
})

test('a container that does not start is told', async () => {
  const { sandbox, run } = engine({ ...UP, run: { code: 125, text: 'no space' }, rm: { code: 0, text: '' } })
  expect(await sandbox.probe(signal, run)).toMatchObject({ available: false, detail: expect.stringContaining('no space') })
})

test('every container is removed by its name, and one that is gone already is no error', async () => {
  const { sandbox, run, asked } = engine({ ...UP, run: { code: 0, text: '' }, rm: { code: 1, text: 'Error: No such container: x' } })
  expect(await sandbox.probe(signal, run)).toEqual({ available: true, detail: 'docker 20.10.24, image img:1' })
  const name = /--name=(sluice-[0-9a-f-]{36})/.exec(asked.find((words) => words.startsWith('run')) ?? '')?.[1]
  expect(asked.at(-1)).toBe(`rm --force --volumes ${name}`)
})

test('a container that cannot be removed is an error', async () => {
  const { sandbox, run } = engine({ ...UP, run: { code: 0, text: '' }, rm: { code: 1, text: 'engine is gone' } })
  expect(await sandbox.probe(signal, run)).toMatchObject({ available: false, detail: expect.stringContaining('engine is gone') })
  const command = await sandbox.wrap({ file: 'true', args: [], cwd: '/tmp', env: {} }, { writable: [], network: false })
  await expect(command.release?.(run)).rejects.toMatchObject({ code: 'unavailable' })
})

const base = { name: 'n', image: 'img:1', user: [], env: [] }
const command = { file: 'ls', args: ['-l'], cwd: '/w' }

test('a container has no privileges, no network and nothing but the folders of the policy', () => {
  const options = runOptions(
    command,
    { writable: ['/w'], network: false, processesMax: 5, memoryBytesMax: 1000, fileBytesMax: 7, cpuSecsMax: 3 },
    base,
  )
  for (const wanted of [
    '--read-only',
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    '--network=none',
    '--pull=never',
    '--pids-limit=5',
    '--memory=1000',
    '--memory-swap=1000',
    '--ulimit=fsize=7:7',
    '--ulimit=cpu=3:3',
    '--ulimit=core=0:0',
    '--mount=type=bind,src=/w,dst=/w',
    '--workdir=/w',
  ]) {
    expect(options).toContain(wanted)
  }
  expect(options.filter((option) => /^--(?:mount|volume)/.test(option))).toHaveLength(1)
  expect(options.slice(options.indexOf('img:1') + 1)).toEqual(['-c', 'exec "$@"', 'sh', 'ls', '-l'])
})

test('a container has no devices but those of the policy', () => {
  const isDevice = (option: string) => option.startsWith('--device')
  expect(runOptions(command, { writable: [], network: false }, base).filter(isDevice)).toEqual([])
  const given = runOptions(command, { writable: [], network: false, devices: ['/dev/bus/usb', '/dev/ttyACM0'] }, base)
  expect(given.filter(isDevice)).toEqual(['--device=/dev/bus/usb', '--device=/dev/ttyACM0'])
})

test.each([
  ['/a,b', '--mount=type=bind,"src=/a,b","dst=/a,b"'],
  ['/a"b', '--mount=type=bind,"src=/a""b","dst=/a""b"'],
  ['/a:b', '--mount=type=bind,src=/a:b,dst=/a:b'],
  ["/work 'space $1", "--mount=type=bind,src=/work 'space $1,dst=/work 'space $1"],
])('a folder named %j is one field', (folder, option) => {
  expect(runOptions(command, { writable: [folder], network: false }, base)).toContain(option)
})

test('a secret is given by its name, and what would change the engine by its value inside only', () => {
  const { options, env } = givenEnv({ TOKEN: 's3cret', DOCKER_HOST: 'tcp://x', PATH: '/bin', http_proxy: 'p', LD_PRELOAD: 'l' })
  expect(options.toSorted()).toEqual([
    '--env=DOCKER_HOST=tcp://x',
    '--env=LD_PRELOAD=l',
    '--env=PATH=/bin',
    '--env=TOKEN',
    '--env=http_proxy=p',
  ])
  expect(env).toEqual({ TOKEN: 's3cret' })
})
