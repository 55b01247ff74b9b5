import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seatbeltProfile } from './seatbelt-profile.ts'
import { SeatbeltSandbox } from './seatbelt-sandbox.ts'

const DATA = '/usr/local/var/sluice'
const signal = new AbortController().signal
let folder = ''
let program = ''
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'seatbelt-')))
  program = join(folder, 'sandbox-exec')
  // Handles its arguments as the real program does, but confines nothing.
  writeFileSync(program, `#!/bin/sh\n[ "$1" = -p ] || exit 64\nprintf %s "$2" > '${folder}/profile'\nshift 2\nexec "$@"\n`)
  chmodSync(program, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Parses a profile into nested lists. Throws if quotes or parentheses do not match. */
function parse(text: string): unknown[] {
  const words = text.match(/[()]|"(?:[^"\\]|\\[\s\S])*"|[^\s()"]+/g) ?? []
  const open: unknown[][] = [[]]
  for (const word of words) {
    if (word === '(') open.push([])
    else if (word === ')') {
      const closed = open.pop()
      if (!open.at(-1)?.push(closed)) throw new Error('unmatched closing parenthesis')
    } else open.at(-1)?.push(word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\([\s\S])/g, '$1') : word)
  }
  if (open.length !== 1) throw new Error('unmatched opening parenthesis')
  return open[0] ?? []
}

describe('seatbeltProfile', () => {
  test('denies everything by default', () => {
    expect(parse(seatbeltProfile({ writable: [], network: false }, DATA)).slice(0, 2)).toEqual([
      ['version', '1'],
      ['deny', 'default'],
    ])
  })

  test('allows writing only in the folders of the policy', () => {
    const writes = parse(seatbeltProfile({ writable: ['/w'], network: false }, DATA)).filter((rule) =>
      JSON.stringify(rule).includes('file-write*'),
    )
    expect(writes).toEqual([['allow', 'file-read*', 'file-write*', ['subpath', '/w']]])
    expect(seatbeltProfile({ writable: [], network: false }, DATA)).not.toContain('file-write*')
  })

  test('denies the data directory after the system rules and before a workspace inside it', () => {
    const rules = seatbeltProfile({ writable: [`${DATA}/workspace`], network: false }, DATA).split('\n')
    const at = (pattern: RegExp) => rules.findIndex((rule) => pattern.test(rule))
    expect(rules).toContain(`(deny file-read* (subpath "${DATA}"))`)
    expect(at(/subpath "\/usr"/)).toBeLessThan(at(/^\(deny file-read/))
    expect(at(/^\(deny file-read/)).toBeLessThan(at(/subpath ".*workspace"/))
  })

  test('allows using, but not replacing, the devices of the policy', () => {
    const rules = parse(seatbeltProfile({ writable: [], network: false, devices: ['/dev/cu.usbmodem1'] }, DATA))
    expect(rules).toContainEqual(['allow', 'file-read*', 'file-write-data', 'file-ioctl', ['subpath', '/dev/cu.usbmodem1']])
    expect(seatbeltProfile({ writable: [], network: false }, DATA)).not.toContain('usbmodem')
  })

  test('allows reading neither homes nor the data of other programs', () => {
    const text = seatbeltProfile({ writable: ['/Users/me/.sluice/workspace'], network: true }, DATA)
    const read = parse(text).filter((rule) => JSON.stringify(rule).includes('"file-read*"'))
    expect(JSON.stringify(read)).not.toMatch(/"\/Users(?:\/me)?(?:\/\.sluice)?"|"\/private\/var"|"\/private\/etc"|"\/"/)
  })

  test('allows the network only if the policy does', () => {
    expect(seatbeltProfile({ writable: [], network: false }, DATA)).not.toContain('network')
    expect(seatbeltProfile({ writable: [], network: true }, DATA)).toContain('(allow network*)')
  })

  test.each(['/a b', '/a"b', '/a\\b', '/a\\"))(allow default)(subpath "', "/it's", '/two\nlines', '/é', '/(x)', '/;x', '/$HOME', '/#|'])(
    'quotes a folder named %j',
    (path) => {
      const plain = parse(seatbeltProfile({ writable: ['/plain'], network: false }, DATA))
      const rules = parse(seatbeltProfile({ writable: [path], network: false }, DATA))
      expect(rules).toHaveLength(plain.length)
      expect(rules).toContainEqual(['allow', 'file-read*', 'file-write*', ['subpath', path]])
      expect(rules).not.toContainEqual(['allow', 'default'])
    },
  )
})

describe('SeatbeltSandbox', () => {
  test('is not available without macOS or without sandbox-exec', async () => {
    expect(await new SeatbeltSandbox(DATA, { platform: 'linux' }).probe(signal, runBare)).toEqual({
      available: false,
      detail: 'it needs macOS',
    })
    expect(await new SeatbeltSandbox(DATA, { platform: 'darwin', program: '/no/such/program' }).probe(signal, runBare)).toEqual({
      available: false,
      detail: '/no/such/program is missing',
    })
  })

  test('is available if a command runs, and names its limitations', async () => {
    const sandbox = new SeatbeltSandbox(DATA, { platform: 'darwin', program })
    expect(await sandbox.probe(signal, runBare)).toMatchObject({
      available: true,
      detail: expect.stringContaining('memory is not bounded'),
    })
  })

  test('passes arguments and environment, and removes the temporary folder', async () => {
    const sandbox = new SeatbeltSandbox(DATA, { platform: 'darwin', program })
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

  test('applies the limits of the policy', async () => {
    const sandbox = new SeatbeltSandbox(DATA, { platform: 'darwin', program })
    const command = await sandbox.wrap(
      { file: 'sh', args: ['-c', 'ulimit -f; ulimit -t; ulimit -c'], cwd: folder, env: { PATH: '/usr/bin:/bin' } },
      { writable: [folder], network: false, fileBytesMax: 512_000, cpuSecsMax: 7 },
    )
    expect((await runBare(command, signal)).stdout).toBe('1000\n7\n0\n')
    await command.release?.(runBare)
  })
})
