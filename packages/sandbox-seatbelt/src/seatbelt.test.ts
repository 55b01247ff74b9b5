import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { profile } from './profile.ts'
import { seatbelt } from './seatbelt.ts'

const DATA = '/usr/local/var/sluice'
const signal = new AbortController().signal
let folder = ''
let program = ''
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'seatbelt-')))
  program = join(folder, 'sandbox-exec')
  // what the real one does with its arguments, without confining
  writeFileSync(program, `#!/bin/sh\n[ "$1" = -p ] || exit 64\nprintf %s "$2" > '${folder}/profile'\nshift 2\nexec "$@"\n`)
  chmodSync(program, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A profile as nested lists; throws where quotes or parentheses do not match. */
function parse(text: string): unknown[] {
  const words = text.match(/[()]|"(?:[^"\\]|\\[\s\S])*"|[^\s()"]+/g) ?? []
  const open: unknown[][] = [[]]
  for (const word of words) {
    if (word === '(') open.push([])
    else if (word === ')') {
      const closed = open.pop()
      if (!open.at(-1)?.push(closed)) throw new Error('a parenthesis too many')
    } else open.at(-1)?.push(word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\([\s\S])/g, '$1') : word)
  }
  if (open.length !== 1) throw new Error('a parenthesis is open')
  return open[0] ?? []
}

test('everything is denied first', () => {
  expect(parse(profile({ writable: [], network: false }, DATA)).slice(0, 2)).toEqual([
    ['version', '1'],
    ['deny', 'default'],
  ])
})

test('§2.7 nothing is written but in the folders of the policy', () => {
  const writes = parse(profile({ writable: ['/w'], network: false }, DATA)).filter((rule) => JSON.stringify(rule).includes('file-write*'))
  expect(writes).toEqual([['allow', 'file-read*', 'file-write*', ['subpath', '/w']]])
  expect(profile({ writable: [], network: false }, DATA)).not.toContain('file-write*')
})

test('the data directory is denied after what is shown of the system, and before a workspace in it is allowed', () => {
  const rules = profile({ writable: [`${DATA}/workspace`], network: false }, DATA).split('\n')
  const at = (pattern: RegExp) => rules.findIndex((rule) => pattern.test(rule))
  expect(rules).toContain(`(deny file-read* (subpath "${DATA}"))`)
  expect(at(/subpath "\/usr"/)).toBeLessThan(at(/^\(deny file-read/))
  expect(at(/^\(deny file-read/)).toBeLessThan(at(/subpath ".*workspace"/))
})

test('devices are in it only by the policy, to be used and not to be replaced', () => {
  const rules = parse(profile({ writable: [], network: false, devices: ['/dev/cu.usbmodem1'] }, DATA))
  expect(rules).toContainEqual(['allow', 'file-read*', 'file-write-data', 'file-ioctl', ['subpath', '/dev/cu.usbmodem1']])
  expect(profile({ writable: [], network: false }, DATA)).not.toContain('usbmodem')
})

test('homes and the data of others are in no rule', () => {
  const text = profile({ writable: ['/Users/me/.sluice/workspace'], network: true }, DATA)
  const read = parse(text).filter((rule) => JSON.stringify(rule).includes('"file-read*"'))
  expect(JSON.stringify(read)).not.toMatch(/"\/Users(?:\/me)?(?:\/\.sluice)?"|"\/private\/var"|"\/private\/etc"|"\/"/)
})

test('the network is in it only by the policy', () => {
  expect(profile({ writable: [], network: false }, DATA)).not.toContain('network')
  expect(profile({ writable: [], network: true }, DATA)).toContain('(allow network*)')
})

test.each(['/a b', '/a"b', '/a\\b', '/a\\"))(allow default)(subpath "', "/it's", '/two\nlines', '/é', '/(x)', '/;x', '/$HOME', '/#|'])(
  'a folder named %j is one text in the profile, and nothing else',
  (path) => {
    const plain = parse(profile({ writable: ['/plain'], network: false }, DATA))
    const rules = parse(profile({ writable: [path], network: false }, DATA))
    expect(rules).toHaveLength(plain.length)
    expect(rules).toContainEqual(['allow', 'file-read*', 'file-write*', ['subpath', path]])
    expect(rules).not.toContainEqual(['allow', 'default'])
  },
)

test('the probe says that it needs macOS', async () => {
  expect(await seatbelt({ dataDir: DATA, platform: 'linux' }).probe(signal, runBare)).toEqual({
    available: false,
    detail: 'it needs macOS',
  })
  expect(await seatbelt({ dataDir: DATA, platform: 'darwin', program: '/no/such/program' }).probe(signal, runBare)).toEqual({
    available: false,
    detail: '/no/such/program is missing',
  })
})

test('the probe passes where a command runs, and says what does not hold', async () => {
  const sandbox = seatbelt({ dataDir: DATA, platform: 'darwin', program })
  expect(await sandbox.probe(signal, runBare)).toMatchObject({ available: true, detail: expect.stringContaining('memory is not bounded') })
})

test('the command gets its words, its environment and a private folder that is gone afterwards', async () => {
  const sandbox = seatbelt({ dataDir: DATA, platform: 'darwin', program })
  const args = ['-c', 'printf "%s|" "$@"; pwd; echo "$GIVEN"; echo "$TMPDIR"; touch "$TMPDIR/x"', 'sh', 'a b', '', '-p', '$HOME']
  const command = await sandbox.wrap(
    { file: 'sh', args, cwd: folder, env: { GIVEN: 'x=$y', PATH: '/usr/bin:/bin' } },
    { writable: [folder], network: false },
  )
  const { stdout } = await runBare(command, signal)
  const [words, given, own = ''] = stdout.split('\n')
  expect([words, given]).toEqual([`a b||-p|$HOME|${folder}`, 'x=$y'])
  expect(existsSync(join(own, 'x'))).toBe(true)
  await command.release?.(runBare)
  expect(existsSync(own)).toBe(false)
})

test('limits of the policy hold inside', async () => {
  const sandbox = seatbelt({ dataDir: DATA, platform: 'darwin', program })
  const command = await sandbox.wrap(
    { file: 'sh', args: ['-c', 'ulimit -f; ulimit -t; ulimit -c'], cwd: folder, env: { PATH: '/usr/bin:/bin' } },
    { writable: [folder], network: false, fileBytesMax: 512_000, cpuSecsMax: 7 },
  )
  expect((await runBare(command, signal)).stdout).toBe('1000\n7\n0\n')
  await command.release?.(runBare)
})
