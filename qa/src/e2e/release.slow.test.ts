/** `pnpm release` in a small repository whose builds are fakes. */
import { spawnSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { writeBase } from '../container/base-image.ts'
import { ROOT } from '../daemons/bundle.ts'

/** Packs nothing. */
const FAKE_PACK = `import { mkdirSync, writeFileSync } from 'node:fs'
export function packAll(folder) {
  mkdirSync(folder, { recursive: true })
  return ['sdk', 'kit'].map((id) => {
    const file = folder + '/sluice-' + id + '-0.2.0.tgz'
    writeFileSync(file, id)
    return { id, name: '@sluice/' + id, version: '0.2.0', file }
  })
}
`

interface Changeset {
  readonly packages: readonly string[]
  readonly bump: 'major' | 'minor' | 'patch'
  readonly text: string
}
interface Release {
  readonly version: string
  readonly date: string
  readonly changesets: readonly Changeset[]
}
const { withEntry, changesPage, entryOf } = (await import(join(ROOT, 'scripts/release-notes.mjs'))) as {
  withEntry(changelog: string, release: Release): string
  changesPage(release: Release): string
  entryOf(changelog: string, release: { readonly version: string; readonly repository?: string }): string
}

describe('the entry of a release', () => {
  const release = {
    version: '0.2.0',
    date: '2030-01-31',
    changesets: [
      { packages: ['sdk'], bump: 'minor', text: 'A new port.' },
      { packages: ['sdk', 'store'], bump: 'minor', text: '**Before you upgrade.** Sign the rows.' },
      { packages: ['channel-irc', 'sdk'], bump: 'patch', text: 'IRC joins again.' },
      { packages: ['cli'], bump: 'patch', text: 'A list:\n\n- one' },
      { packages: ['cli', 'http'], bump: 'major', text: 'A command is gone.' },
    ],
  } as const

  test('keeps the text that is written by hand, adds what operators need to know, and links to every change', () => {
    const changelog =
      '# Changelog\n\nIntroduction.\n\n## 0.2.0 (in preparation)\n\nBy hand.\n\n### Before you upgrade\n\n- Make a copy.\n\n### Delivery\n\n- More.\n\n## 0.1.0\n\nThe first.\n'
    expect(withEntry(changelog, release)).toBe(`# Changelog

Introduction.

## 0.2.0, 2030-01-31

By hand.

### Before you upgrade

- Make a copy.
- Sign the rows.

### Delivery

- More.

Every change: [docs/changes/0.2.0.md](docs/changes/0.2.0.md).

## 0.1.0

The first.
`)
  })

  test('stands above the earlier ones when none is in preparation', () => {
    const made = withEntry('# Changelog\n\n## 0.1.0\n\nThe first.\n', release)
    expect(made).toMatch(
      /^# Changelog\n\n## 0\.2\.0, 2030-01-31\n\n### Before you upgrade\n\n- Sign the rows\.\n[\s\S]*\n\n## 0\.1\.0\n\nThe first\.\n$/,
    )
  })

  test('is the text of the page of the release, where its links work', () => {
    const changelog =
      '# Changelog\n\n## 0.3.0, 2030-02-01\n\nNew.\n\n## 0.2.0, 2030-01-31\n\nSee [all](docs/a.md), [web](https://x.example).\n'
    expect(entryOf(changelog, { version: '0.2.0' })).toBe('See [all](docs/a.md), [web](https://x.example).\n')
    expect(entryOf(changelog, { version: '0.2.0', repository: 'https://github.com/o/n' })).toBe(
      'See [all](https://github.com/o/n/blob/v0.2.0/docs/a.md), [web](https://x.example).\n',
    )
    expect(() => entryOf(changelog, { version: '0.4.0' })).toThrow(/no entry of 0\.4\.0/)
  })

  test('every other change is on a page, in groups of which that for operators is the first', () => {
    expect(changesPage(release)).toBe(`# All changes of 0.2.0

What matters most is in [CHANGELOG.md](../../CHANGELOG.md).

## Running and configuration

- **Breaking:** A command is gone.
- A list:

  - one

## Messages and channels

- IRC joins again.

## For programs that embed Sluice

- A new port.
`)
  })
})

// Each release starts some processes, which a busy machine may keep waiting.
describe('a release', { timeout: 300_000 }, () => {
  let root: string
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const git = (...args: readonly string[]) => {
    const identity = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com']
    return spawnSync('git', [...identity, ...args], { cwd: root, encoding: 'utf8' }).stdout.trim()
  }
  /** A build whose program answers `answer`. */
  const fakeBuild = (answer: string) => `import { mkdirSync, writeFileSync } from 'node:fs'
import { checksums } from './artefact/checksums.mjs'
import { packBuild } from './artefact/pack-build.mjs'
const [profile] = process.argv.slice(2)
const folder = 'dist/' + profile
mkdirSync(folder, { recursive: true })
writeFileSync(folder + '/sluice', 'console.log(${JSON.stringify(answer)})')
writeFileSync(folder + '/sluice.mjs', 'import { writeFileSync } from "node:fs"; writeFileSync(process.argv[5] + "/config.toml", "")')
writeFileSync(folder + '/install.sh', ${JSON.stringify(`#!/bin/sh\nmkdir -p "$3/bin"\nprintf '#!/bin/sh\\necho "${answer}"\\n' >"$3/bin/sluice"\nchmod 755 "$3/bin/sluice"\n`)}, { mode: 0o755 })
writeFileSync(folder + '/package.json', '{"version":"0.2.0"}')
writeFileSync(folder + '/sbom.cdx.json', '{}')
writeFileSync(folder + '/SHA256SUMS', checksums(folder, ['sluice', 'sluice.mjs', 'install.sh', 'package.json', 'sbom.cdx.json']))
await packBuild(folder, 'dist/packed/' + profile)
`

  const writePackage = (id: string, more: object = {}) => {
    const manifest = { name: `@sluice/${id}`, version: '0.1.0', license: 'MIT', publishConfig: { access: 'public' }, ...more }
    write(`packages/${id}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`)
  }
  const testOf = (check: string) =>
    `import { readdirSync } from 'node:fs'\nimport { expect, test } from 'vitest'\ntest('packages', () => {\n  ${check}\n})\n`

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sluice-release-'))
    cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
    write('.gitignore', 'node_modules\ndist/\n*.pem\n')
    for (const file of ['package.json', 'qa/package.json']) write(file, '{\n  "name": "x",\n  "version": "0.1.0",\n  "type": "module"\n}\n')
    writePackage('sdk')
    writePackage('kit', { dependencies: { '@sluice/sdk': 'workspace:*' } })
    write('scripts/pack.mjs', FAKE_PACK)
    write('vitest.workspace.ts', 'export default {}\n')
    write('qa/src/packages/packages.test.ts', testOf('expect(readdirSync(process.env.SLUICE_PACKED)).toHaveLength(2)'))
    cpSync(join(ROOT, 'Dockerfile'), join(root, 'Dockerfile'))
    writeBase(join(root, 'dist/base'))
    write('README.md', 'sluice 0.1.0 (full) listening')
    write('docs/install.md', './sluice-0.1.0-full/install.sh')
    write('packages/channel-discord/src/api.ts', "const USER_AGENT = '@sluice/channel-discord, 0.1.0'")
    write('CHANGELOG.md', '# Changelog\n\n## 0.1.0\n\nThe first.\n')
    write('.changeset/one.md', '---\n"@sluice/cli": minor\n---\n\nOne change.\n')
    write('scripts/docs.mjs', '')
    write('scripts/build.mjs', fakeBuild('sluice 0.2.0 (commit 0123456789ab)'))
    write('qa/src/public-surface/accepted.ts', "export const ACCEPTED: readonly Accepted[] = [\n  { item: 'x' },\n]\n")
    write(
      'qa/src/public-surface/record.ts',
      "import { writeFileSync } from 'node:fs'\nwriteFileSync('qa/fixtures/public-surface/0.2.0', '')\n",
    )
    write('qa/fixtures/public-surface/0.1.0', '')
    write('release.pem', generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    write('rsa.pem', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    chmodSync(join(root, 'scripts'), 0o755)
    git('init', '--quiet')
    git('add', '--all')
    git('commit', '--quiet', '--message', 'first')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const release = (...args: readonly string[]) => {
    const who = {
      GIT_AUTHOR_NAME: 'Ada',
      GIT_AUTHOR_EMAIL: 'ada@example.com',
      GIT_COMMITTER_NAME: 'Ada',
      GIT_COMMITTER_EMAIL: 'ada@example.com',
    }
    const env = { ...process.env, ...who }
    return spawnSync(process.execPath, ['scripts/release.mjs', ...args], { cwd: root, encoding: 'utf8', env })
  }

  test('is one commit with the version and the changelog, a tag on it, and signed artefacts', () => {
    expect(release('0.2.0', '--key', 'release.pem', '--base', 'dist/base')).toMatchObject({ status: 0, stderr: '' })
    expect(git('log', '--format=%s')).toBe('chore(release): 0.2.0\nfirst')
    expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD'))
    expect(git('status', '--porcelain')).toBe('')
    expect([read('package.json'), read('qa/package.json'), read('packages/sdk/package.json')].join('')).not.toContain('0.1.0')
    expect([read('README.md'), read('docs/install.md')]).toEqual(['sluice 0.2.0 (full) listening', './sluice-0.2.0-full/install.sh'])
    expect(read('docs/changes/0.2.0.md')).toContain('- One change.')
    expect(read('qa/src/public-surface/accepted.ts')).toBe('export const ACCEPTED: readonly Accepted[] = []\n')
    expect(readdirSync(join(root, '.changeset'))).toEqual([])
    const folder = 'dist/release/0.2.0'
    expect(readdirSync(join(root, folder)).toSorted()).toEqual(
      [
        ...['CHANGELOG.md', 'SHA256SUMS', 'SHA256SUMS.sig', 'release.pub.pem', 'sluice-0.2.0.tgz', 'sluice-0.2.0-image.txt'],
        ...['get-sluice.sh', 'image', 'npm', 'publish.sh', 'release-notes.md'],
        ...['full', 'minimal', 'standard'].flatMap((name) => [`sluice-0.2.0-${name}.cdx.json`, `sluice-0.2.0-${name}.tar.gz`]),
      ].toSorted(),
    )
    const signature = readFileSync(join(root, folder, 'SHA256SUMS.sig'))
    const sums = readFileSync(join(root, folder, 'SHA256SUMS'))
    expect(verify(null, sums, createPublicKey(read(`${folder}/release.pub.pem`)), signature)).toBe(true)
    const checked = spawnSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: join(root, folder), encoding: 'utf8' })
    expect(checked).toMatchObject({ status: 0, stderr: '' })
  })

  test('leaves the clone as it was after a dry run', () => {
    expect(release('0.2.0', '--dry-run')).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringContaining('0.2.0 would be released'),
    })
    expect([git('log', '--format=%s'), git('tag'), git('status', '--porcelain')]).toEqual(['first', '', ''])
    expect(existsSync(join(root, 'dist/release/0.2.0/sluice-0.2.0-full.tar.gz'))).toBe(true)
    expect(read('dist/release/0.2.0/CHANGELOG.md')).toContain('docs/changes/0.2.0.md')
  })

  test('says what is missing, and how to publish the rest', () => {
    const bare = release('0.2.0', '--dry-run').stdout
    for (const missing of ['--key', '--downloads', '--base']) expect(bare).toContain(`missing: ${missing} was missing`)
    expect(bare).toContain('missing: package.json has no "repository"')
    const manifest = { ...JSON.parse(read('package.json')), repository: { type: 'git', url: 'git+https://github.com/o/n.git' } }
    write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
    git('commit', '--all', '--quiet', '--message', 'second')
    const { stdout } = release('0.2.0', '--dry-run', '--key', 'release.pem', '--base', 'dist/base')
    expect(stdout).not.toContain('missing')
    for (const step of ['npm', 'image', 'page']) expect(stdout).toContain(`dist/release/0.2.0/publish.sh ${step}`)
    expect(read('dist/release/0.2.0/get-sluice.sh')).toContain("'https://github.com/o/n/releases/download/v0.2.0'")
    expect(stdout).toContain(read('dist/release/0.2.0/sluice-0.2.0-image.txt').trim())
  })

  test('names the repository in every package, so that npm can prove where it comes from', () => {
    const manifest = { ...JSON.parse(read('package.json')), repository: { type: 'git', url: 'git+https://github.com/o/n.git' } }
    write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
    git('commit', '--all', '--quiet', '--message', 'second')
    expect(release('0.2.0', '--key', 'release.pem').status).toBe(0)
    expect(JSON.parse(read('packages/kit/package.json')).repository).toEqual({
      type: 'git',
      url: 'git+https://github.com/o/n.git',
      directory: 'packages/kit',
    })
  })

  test('is published in an order that npm can install, and each step can be repeated', () => {
    release('0.2.0', '--key', 'release.pem', '--base', 'dist/base')
    const bin = join(root, 'dist/bin')
    // The file `published` names the packages that are published already.
    const script = `#!/bin/sh\nif [ "$1" = view ]; then grep -qxF "$2" '${bin}/published'; exit $?; fi\necho "\${0##*/} $*" >>'${bin}/calls'\n`
    for (const name of ['npm', 'skopeo', 'gh']) {
      write(`dist/bin/${name}`, script)
      chmodSync(join(bin, name), 0o755)
    }
    write('dist/bin/published', '@sluice/sdk@0.2.0\n')
    const publish = (step: string) =>
      spawnSync(join(root, 'dist/release/0.2.0/publish.sh'), [step], {
        encoding: 'utf8',
        env: { PATH: `${bin}:${process.env.PATH}`, IMAGE: 'r.example/o/sluice' },
      })
    expect(publish('npm')).toMatchObject({ status: 0, stderr: '' })
    const { stdout } = publish('image')
    expect(stdout).toBe(`published r.example/o/sluice@${read('dist/release/0.2.0/sluice-0.2.0-image.txt')}`)
    expect(publish('page')).toMatchObject({ status: 1, stderr: expect.stringContaining('make a page for v0.2.0') })
    expect(read('dist/bin/calls').trim().split('\n')).toEqual([
      'npm publish ./npm/sluice-kit-0.2.0.tgz --access public',
      'npm publish ./sluice-0.2.0.tgz --access public',
      'skopeo copy --all --preserve-digests oci:image:0.2.0 docker://r.example/o/sluice:0.2.0',
    ])
    write('dist/release/0.2.0/npm/sluice-kit-0.2.0.tgz', 'changed')
    expect(publish('npm')).toMatchObject({ status: 1, stdout: 'sluice-kit-0.2.0.tgz: FAILED\n' })
    write('dist/release/0.2.0/sluice-0.2.0.tgz', 'changed')
    expect(publish('npm')).toMatchObject({ status: 1, stdout: 'sluice-0.2.0.tgz: FAILED\n' })
    expect(publish('all')).toMatchObject({ status: 2, stderr: 'usage: ./publish.sh npm|image|page\n' })
  })

  test.each([
    ['a name', { name: '@sluice/other' }, 'packages/kit has the name @sluice/other instead of @sluice/kit'],
    ['a package that is private', { publishConfig: {} }, 'would be published privately'],
    [
      'a dependency that is not published',
      { dependencies: { '@sluice/none': 'workspace:*' } },
      'needs @sluice/none, which is not published',
    ],
    ['a circle', { dependencies: { '@sluice/kit': 'workspace:*' } }, 'packages need each other: @sluice/kit > @sluice/kit'],
  ])('refuses %s that npm cannot publish', (_, more, reason) => {
    writePackage('kit', more)
    git('commit', '--all', '--quiet', '--message', 'second')
    expect(release('0.2.0', '--dry-run')).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) })
  })

  test('refuses packages that fail their tests', () => {
    write('qa/src/packages/packages.test.ts', testOf("expect('types').toBe('found')"))
    git('commit', '--all', '--quiet', '--message', 'second')
    expect(release('0.2.0', '--dry-run')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('the packages for npm fail their tests'),
    })
    expect(git('status', '--porcelain')).toBe('')
  })

  test('refuses an archive whose program is of another version', () => {
    write('scripts/build.mjs', fakeBuild('sluice 0.1.0'))
    git('commit', '--all', '--quiet', '--message', 'second')
    expect(release('0.2.0', '--dry-run')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("answers 'sluice 0.1.0' to --version"),
    })
    expect(git('status', '--porcelain')).toBe('')
  })

  test.each([
    [['0.2'], 'usage: pnpm release'],
    [['0.2.0'], 'a release is signed: give --key'],
    [['0.1.0', '--dry-run'], '0.1.0 is not later than 0.1.0'],
    [['0.2.0', '--key', 'none.pem'], 'none.pem cannot be read as a private key'],
    [['0.2.0', '--key', 'rsa.pem'], 'rsa.pem is rsa; make one with'],
  ])('with the arguments %j says why it refuses', (args, reason) => {
    expect(release(...args)).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) })
    expect(git('log', '--format=%s')).toBe('first')
  })

  test('refuses a clone with changes, and one without changesets', () => {
    write('other.txt', '')
    expect(release('0.2.0', '--dry-run').stderr).toContain('the working tree has changes')
    rmSync(join(root, 'other.txt'))
    rmSync(join(root, '.changeset/one.md'))
    git('commit', '--all', '--quiet', '--message', 'second')
    expect(release('0.2.0', '--dry-run').stderr).toContain('no changeset waits')
  })
})
