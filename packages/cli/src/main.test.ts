/** Usage, exit codes and help. No test starts a daemon. */
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from './command-descriptions.ts'

const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})
const sluice = sluiceWith([OFFLINE])

describe('usage', () => {
  test('no command prints the short help with exit code 2; --help prints all commands with 0', async () => {
    expect(await sluice()).toMatchObject({ code: 2, out: expect.stringContaining('usage: sluice <command>') })
    const help = await sluice('--help')
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('usage: sluice <command>') })
    expect(await sluice('help')).toEqual(help)
    expect(await sluice('help', 'config', 'check')).toEqual(await sluice('config', 'check', '--help'))
  })

  test.each(['-v', '-V', '--version'])('%s prints the version and nothing else', async (option) => {
    expect(await sluice(option)).toMatchObject({ code: 0, out: expect.stringMatching(/^sluice \d+\.\d+\.\d+.*\n$/) })
  })

  test.each(COMMANDS.map(({ name }) => name))('%s --help shows its usage', async (name) => {
    const { code, out } = await sluice(...name.split(' '), '--help')
    expect(code).toBe(0)
    expect(out).toContain(`usage: sluice ${name}`)
    expect(out).toContain('--data-dir')
  })

  test('help describes the command of a compiled feature', async () => {
    const plugins = sluiceWith([OFFLINE, defineFeature({ id: 'plugins-wasm', build: () => ({}) })])
    const { code, out } = await plugins('plugin', 'install', '--help')
    expect(code).toBe(0)
    expect(out).toContain('usage: sluice plugin install <directory-or-archive-or-url> [options]')
    expect(out).toMatch(/^Install a plugin from/)
    expect((await plugins('plugin', '--help')).out).toMatch(/plugin list +List installed plugins/)
    expect((await plugins('--help')).out).toMatch(/plugin +list, install, remove, info\n/)
    expect((await sluice('--help')).out).toMatch(/plugin +list, install, remove, info \(not in this build\)\n/)
  })

  test('a first word with --help lists its commands', async () => {
    const { code, out } = await sluice('sop', '--help')
    expect([code, out]).toEqual([0, expect.stringMatching(/^usage: sluice sop <command>.*sop audit +\S/s)])
  })

  test.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['statsu', '--data-dir', 'x'], "unknown command 'statsu'; did you mean 'status'?"],
    [['config', 'chek'], "unknown command 'config chek'; did you mean 'config check'?"],
    [['start'], "unknown command 'start'; did you mean 'daemon'?"],
    [['kill'], "unknown command 'kill'; did you mean 'stop'?"],
    [['config', 'show'], "unknown command 'config show'; did you mean 'config get'?"],
    [['turns', 'get', 'x'], "unknown command 'turns get x'; did you mean 'turns show'?"],
    [['constructor'], "unknown command 'constructor'; 'sluice --help' lists the commands"],
    [['webhook'], "'sluice webhook' needs one of its commands: webhook send, webhook check"],
    [['status', '--jsn'], "did you mean '--json'?"],
    [['--data-dir', '/x', 'status'], 'options come after the command: sluice <command> --data-dir'],
    [['config', 'nonsense'], 'config check, config get'],
    [['daemon', '--prot', '1'], "'--prot'"],
    [['pair', 'revoke'], '<device-id> is missing'],
    [['status', 'extra'], "'extra' is one argument too many"],
    [['daemon', '--port', 'x'], "'x'"],
    [['config', 'get', 'gateway..port'], '"gateway..port" is not a key'],
    [['completion', 'tcsh'], 'tcsh'],
    [['plugin', 'install', 'x'], 'npm run build -- full --features plugins-wasm'],
    [['hardware', 'info', '--chip', 'y'], 'npm run build -- full --features probe'],
  ])('%j fails with exit code 2 and one line', async (argv, piece) => {
    const { code, err } = await sluice(...argv)
    expect(code).toBe(2)
    expect(err).toContain(piece)
    expect(err.trim().split('\n')).toHaveLength(1)
  })

  test.each([['sessions', 'eras'], ['restoer'], ['memory', 'forgt'], ['service', 'uninstal']])(
    '%s %s suggests nothing that destroys',
    async (...argv) => {
      const { code, err } = await sluice(...argv.filter((word) => word !== undefined))
      expect([code, err]).toEqual([2, expect.not.stringMatching(/did you mean '[^']*(?:erase|restore|forget|uninstall)'/)])
    },
  )

  test('--json prints an error as JSON', async () => {
    const { code, err } = await sluice('plugin', 'list', '--json')
    expect(code).toBe(2)
    expect(JSON.parse(err)).toMatchObject({ code: 'not_compiled', feature: 'plugins-wasm' })
  })
})
