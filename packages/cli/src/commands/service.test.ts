import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let home: string
let dataDir: string
let units: string

/** A `systemctl` that writes down how it is called, and knows the state of one service. */
const SYSTEMCTL = `#!/bin/sh
echo "$*" >>"$HOME/calls"
case "$*" in
  *' show '*) printf 'ActiveState=active\\nSubState=running\\nUnitFileState=enabled\\nMainPID=77\\nNRestarts=2\\n' ;;
esac
`

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'service-'))
  dataDir = join(home, 'data')
  units = join(home, '.config/systemd/user')
  mkdirSync(join(home, 'bin'))
  writeFileSync(join(home, 'bin/systemctl'), SYSTEMCTL)
  chmodSync(join(home, 'bin/systemctl'), 0o755)
  configure('[security.sandbox]\nbackend = "none"\n')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function configure(text: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileSync(join(dataDir, 'config.toml'), text, { mode: 0o600 })
}

const service = (...args: string[]) =>
  sluiceWith([], piped(''), { HOME: home, PATH: `${join(home, 'bin')}:/usr/bin:/bin` })(
    'service',
    ...args,
    '--scope',
    'user',
    '--data-dir',
    dataDir,
  )

const calls = () => (existsSync(join(home, 'calls')) ? readFileSync(join(home, 'calls'), 'utf8').trim().split('\n') : [])
const unit = (name: string) => readFileSync(join(units, name), 'utf8')

describe.runIf(process.platform === 'linux')('sluice service', { timeout: 60_000 }, () => {
  test('install writes a service and its socket, and starts them', async () => {
    const { code, out, err } = await service('install')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('journalctl --user -u sluice.service')
    // A path is quoted only where it has a space.
    expect(unit('sluice.service').replaceAll('"', '')).toContain(` daemon --data-dir ${dataDir}\n`)
    expect(unit('sluice.socket')).toContain('ListenStream=127.0.0.1:42617\n')
    expect(calls().slice(-4)).toEqual([
      '--user daemon-reload',
      '--user enable sluice.service sluice.socket',
      '--user stop sluice.service sluice.socket',
      '--user start sluice.socket sluice.service',
    ])
  })

  test('install --no-start leaves the service as it is', async () => {
    expect((await service('install', '--no-start')).code).toBe(0)
    expect(calls().at(-1)).toBe('--user enable sluice.service sluice.socket')
  })

  test('install --print shows the files and changes nothing', async () => {
    const { code, out } = await service('install', '--print')
    expect(code).toBe(0)
    expect(out).toContain(`# ${join(units, 'sluice.socket')}\n`)
    expect([existsSync(units), calls()]).toEqual([false, []])
  })

  test('install takes the address and the sandbox from the configuration', async () => {
    configure('[gateway]\nhost = "::1"\nport = 8080\n[security.sandbox]\nbackend = "userns"\n')
    await service('install')
    expect(unit('sluice.socket')).toContain('ListenStream=[::1]:8080\n')
    expect(unit('sluice.service')).not.toContain('RestrictNamespaces')
  })

  test.each([
    ['[gateway]\nport = 0\n', 'fixed port'],
    ['[gateway]\nhost = "gateway.example"\n[security.sandbox]\nbackend = "none"\n', 'an IP address'],
  ])('install refuses an address that no socket can keep open: %j', async (text, why) => {
    configure(text)
    const { code, err } = await service('install')
    expect([code, existsSync(units)]).toEqual([78, false])
    expect(err).toContain(why)
  })

  test('status shows the state, and that the configuration needs another service', async () => {
    expect((await service('status')).out).toContain('sluice service install')
    await service('install')
    const found = JSON.parse((await service('status', '--json')).out)
    expect(found).toMatchObject({ installed: true, running: true, enabled: true, pid: 77, restarts: 2, outdated: false })
    configure('[gateway]\nport = 8081\n[security.sandbox]\nbackend = "none"\n')
    expect(JSON.parse((await service('status', '--json')).out)).toMatchObject({ outdated: true })
  })

  test('uninstall stops the service, and keeps its data', async () => {
    await service('install')
    expect((await service('uninstall')).out).toContain(dataDir)
    expect([existsSync(join(units, 'sluice.service')), existsSync(join(units, 'sluice.socket'))]).toEqual([false, false])
    expect(calls().slice(-2)).toEqual(['--user disable --now sluice.service sluice.socket', '--user daemon-reload'])
    expect(existsSync(join(dataDir, 'config.toml'))).toBe(true)
    expect((await service('uninstall')).out).toContain('no service is installed')
  })

  test('a failure of systemctl is one line with its reason', async () => {
    writeFileSync(join(home, 'bin/systemctl'), '#!/bin/sh\necho "no bus" >&2\nexit 1\n')
    const { code, err } = await service('install')
    expect(code).toBe(1)
    expect(err).toBe("sluice: 'systemctl --user daemon-reload' failed: no bus\n")
  })
})
