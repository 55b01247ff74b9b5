import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { RunBare } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ContainerSandbox } from './container-sandbox.ts'
import { containerEnv } from './engine-env.ts'
import { runOptions } from './run-options.ts'

const signal = new AbortController().signal
const folders: string[] = []
afterEach(() => {
  vi.unstubAllEnvs()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A fake `docker` that answers by its first arguments. `calls` holds the arguments of each call. */
function engine(answers: Readonly<Record<string, { code: number; text: string }>>) {
  const folder = mkdtempSync(join(tmpdir(), 'container-'))
  folders.push(folder)
  const cases = Object.entries(answers).map(
    ([words, { code, text }]) => `"${words}"*) echo '${text}' >&${code === 0 ? 1 : 2}; exit ${code};;`,
  )
  writeFileSync(join(folder, 'docker'), `#!/bin/sh\ncase "$*" in ${cases.join(' ')} esac\n`)
  chmodSync(join(folder, 'docker'), 0o755)
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  const calls: string[] = []
  const run: RunBare = (command, limit) => {
    calls.push(command.args.join(' '))
    return runBare(command, limit)
  }
  return { calls, run, sandbox: new ContainerSandbox({ engine: 'docker', image: 'img:1' }) }
}

const UP = { version: { code: 0, text: '20.10.24' }, 'image inspect': { code: 0, text: 'sha256:1' } }

describe('ContainerSandbox', () => {
  test('reports a stopped engine as installed, with the cure', async () => {
    const { sandbox, run } = engine({ version: { code: 1, text: 'Cannot connect to the Docker daemon' } })
    vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1')
    expect(await sandbox.probe(signal, run)).toEqual({
      available: false,
      isInstalled: true,
      detail: 'docker does not answer (Cannot connect to the Docker daemon): start its engine, and allow this user to use it',
    })
  })

  test('reports an engine that this user may not use as not installed', async () => {
    const { sandbox, run } = engine({ version: { code: 1, text: 'permission denied while trying to connect' } })
    vi.stubEnv('DOCKER_HOST', 'tcp://127.0.0.1:1')
    const found = await sandbox.probe(signal, run)
    expect(found).toMatchObject({ available: false, detail: expect.stringContaining('allow this user to use it') })
    expect(found.isInstalled).toBeUndefined()
  })

  test('names the command that pulls a missing image, and does not pull it', async () => {
    const { sandbox, run, calls } = engine({ ...UP, 'image inspect': { code: 1, text: 'No such image' } })
    expect(await sandbox.probe(signal, run)).toEqual({ available: false, detail: "the image 'img:1' is missing: run `docker pull img:1`" })
    expect(calls.some((words) => words.startsWith('pull') || words.startsWith('run'))).toBe(false)
  })

  test('reports why a container did not start', async () => {
    const { sandbox, run } = engine({ ...UP, run: { code: 125, text: 'no space' }, rm: { code: 0, text: '' } })
    expect(await sandbox.probe(signal, run)).toMatchObject({ available: false, detail: expect.stringContaining('no space') })
  })

  test('removes each container by its name, and accepts that it is gone already', async () => {
    const { sandbox, run, calls } = engine({ ...UP, run: { code: 0, text: '' }, rm: { code: 1, text: 'Error: No such container: x' } })
    expect(await sandbox.probe(signal, run)).toEqual({ available: true, detail: 'docker 20.10.24, image img:1' })
    const name = /--name=(sluice-[0-9a-f-]{36})/.exec(calls.find((words) => words.startsWith('run')) ?? '')?.[1]
    expect(calls.at(-1)).toBe(`rm --force --volumes ${name}`)
  })

  test('throws if a container cannot be removed', async () => {
    const { sandbox, run } = engine({ ...UP, run: { code: 0, text: '' }, rm: { code: 1, text: 'engine is gone' } })
    expect(await sandbox.probe(signal, run)).toMatchObject({ available: false, detail: expect.stringContaining('engine is gone') })
    const command = await sandbox.wrap({ file: 'true', args: [], cwd: '/tmp', env: {} }, { writable: [], network: false })
    await expect(command.release?.(run)).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('runOptions', () => {
  const base = { name: 'n', image: 'img:1', user: [], env: [] }
  const command = { file: 'ls', args: ['-l'], cwd: '/w' }

  test('gives a container no privileges, no network and only the folders of the policy', () => {
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

  test('gives a container only the devices of the policy', () => {
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
  ])('quotes a folder named %j as one field', (folder, option) => {
    expect(runOptions(command, { writable: [folder], network: false }, base)).toContain(option)
  })
})

describe('containerEnv', () => {
  test('passes a variable by its name, and one that would change the engine by its value', () => {
    const { options, env } = containerEnv({ TOKEN: 's3cret', DOCKER_HOST: 'tcp://x', PATH: '/bin', http_proxy: 'p', LD_PRELOAD: 'l' })
    expect(options.toSorted()).toEqual([
      '--env=DOCKER_HOST=tcp://x',
      '--env=LD_PRELOAD=l',
      '--env=PATH=/bin',
      '--env=TOKEN',
      '--env=http_proxy=p',
    ])
    expect(env).toEqual({ TOKEN: 's3cret' })
  })
})
