/** The image of a release, which is made without an engine: the same bytes each time, and read by programs of others. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'
import { debianProgram } from '../debian-program.ts'
import { sha256, writeBase, writeJsonBlob, writeLayout } from './base-image.ts'

interface Image {
  readonly base: string
  readonly build: string
  readonly folder: string
  readonly version: string
  readonly revision: string
  readonly createdAtMs: number
}
interface ImageModule {
  makeImage(image: Image): { readonly digest: string; readonly platforms: readonly string[] }
  checkImage(folder: string, digest: string): void
}
const load = <Module>(file: string) => import(join(ROOT, 'scripts/release', file)) as Promise<Module>
const { makeImage, checkImage } = await load<ImageModule>('image.mjs')
const { runConfig } = await load<{ runConfig(dockerfile: string): Readonly<Record<string, unknown>> }>('dockerfile.mjs')

const run = promisify(execFile)
const CREATED = Date.UTC(2030, 0, 31)
const root = mkdtempSync(join(tmpdir(), 'sluice-image-'))
const base = join(root, 'base')
const build = join(root, 'build')
afterAll(() => rmSync(root, { recursive: true, force: true }))

const makeIn = (name: string, options: Partial<Image> = {}) => {
  const folder = join(root, name)
  return { folder, ...makeImage({ base, build, folder, version: '0.3.0', revision: 'abc', createdAtMs: CREATED, ...options }) }
}

beforeAll(() => {
  writeBase(base)
  mkdirSync(join(build, 'dashboard'), { recursive: true })
  writeFileSync(join(build, 'dashboard/page.js'), 'page')
  writeFileSync(join(build, 'sluice'), 'program', { mode: 0o755 })
  // The fake program writes the configuration, as `sluice config init --data-dir` does.
  writeFileSync(
    join(build, 'sluice.mjs'),
    "import { writeFileSync } from 'node:fs'\nwriteFileSync(process.argv[5] + '/config.toml', '[gateway]')\n",
  )
})

describe('the image of a release', { timeout: 300_000 }, () => {
  test('has every platform of its base, and the same digest each time', () => {
    const [one, two] = [makeIn('one'), makeIn('two')]
    expect(one.platforms).toEqual(['linux/amd64', 'linux/arm64'])
    expect(two.digest).toBe(one.digest)
    expect(() => checkImage(one.folder, one.digest)).not.toThrow()
    expect(makeIn('later', { createdAtMs: CREATED + 1000 }).digest).not.toBe(one.digest)
  })

  test('is refused when a byte of it is not the one that was made', () => {
    const { folder, digest } = makeIn('damaged')
    const blobs = join(folder, 'blobs/sha256')
    for (const name of readdirSync(blobs)) {
      const bytes = readFileSync(join(blobs, name))
      const changed = Buffer.from(bytes)
      changed[changed.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      writeFileSync(join(blobs, name), changed)
      expect(() => checkImage(folder, digest), name).toThrow(/is damaged|Unexpected|JSON/)
      writeFileSync(join(blobs, name), bytes)
    }
    expect(() => checkImage(folder, sha256(Buffer.alloc(1)))).toThrow(/instead of/)
  })

  test('is not made on a damaged base, or on one of another format', () => {
    const damaged = join(root, 'damaged-base')
    cpSync(base, damaged, { recursive: true })
    const largest = readdirSync(join(damaged, 'blobs/sha256')).toSorted(
      (a, b) => statSync(join(damaged, 'blobs/sha256', a)).size - statSync(join(damaged, 'blobs/sha256', b)).size,
    )[0]
    writeFileSync(join(damaged, 'blobs/sha256', largest ?? ''), 'x')
    expect(() => makeIn('on-damaged', { base: damaged })).toThrow(/is damaged/)
    const docker = join(root, 'docker-base')
    cpSync(base, docker, { recursive: true })
    const type = 'application/vnd.docker.distribution.manifest.v2+json'
    writeLayout(docker, writeJsonBlob(docker, type, {}), 'node')
    expect(() => makeIn('on-docker', { base: docker })).toThrow(/copy it with 'skopeo copy --all --format oci'/)
  })

  test('runs as the Dockerfile says', () => {
    const config = runConfig(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
    expect(config).toEqual({
      User: '10001:10001',
      Env: ['SVC_DATA_DIR=/data', 'SVC_GATEWAY_HOST=0.0.0.0', 'HOME=/data', 'XDG_CACHE_HOME=/tmp'],
      WorkingDir: '/data',
      Volumes: { '/data': {} },
      ExposedPorts: { '42617/tcp': {} },
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['CMD', 'sluice', 'status'], Interval: 30e9, Timeout: 15e9, StartPeriod: 60e9, Retries: 3 },
      Entrypoint: ['sluice'],
      Cmd: ['daemon'],
    })
    expect(() => runConfig('FROM x\nRUN true')).toThrow(/cannot follow this line of the Dockerfile: RUN true/)
  })

  test('skopeo reads it, and umoci unpacks its files with their owners', async ({ skip }) => {
    const { folder, digest } = makeIn('read')
    const skopeo = await debianProgram({ packages: ['skopeo'], program: 'usr/bin/skopeo' })
    const umoci = await debianProgram({ packages: ['umoci'], program: 'usr/bin/umoci' })
    if ('missing' in skopeo) return skip(skopeo.missing)
    if ('missing' in umoci) return skip(umoci.missing)
    const policy = join(root, 'policy.json')
    writeFileSync(policy, '{"default":[{"type":"insecureAcceptAnything"}]}')
    const copied = join(root, 'copied')
    const env = { ...process.env, ...skopeo.env }
    await run(skopeo.path, ['--policy', policy, 'copy', '--all', '--preserve-digests', `oci:${folder}:0.3.0`, `oci:${copied}:0.3.0`], {
      env,
    })
    expect(JSON.parse(readFileSync(join(copied, 'index.json'), 'utf8')).manifests[0].digest).toBe(digest)
    const { stdout } = await run(skopeo.path, ['inspect', '--config', `oci:${folder}:0.3.0`], { env })
    expect(JSON.parse(stdout).config).toMatchObject({
      Env: expect.arrayContaining(['PATH=/usr/local/bin:/usr/bin', 'HOME=/data']),
      Entrypoint: ['sluice'],
      Cmd: ['daemon'],
    })
    const single = join(root, 'single')
    await run(skopeo.path, ['--policy', policy, 'copy', `oci:${folder}:0.3.0`, `oci:${single}:0.3.0`], { env })
    const bundle = join(root, 'bundle')
    await run(umoci.path, ['unpack', '--image', `${single}:0.3.0`, bundle], { env: { ...process.env, ...umoci.env } })
    const modeOf = (path: string) => {
      const { mode, uid } = statSync(join(bundle, 'rootfs', path))
      return [(mode & 0o777).toString(8), uid]
    }
    expect(modeOf('opt/sluice/sluice')).toEqual(['755', 0])
    expect(modeOf('opt/sluice/dashboard/page.js')).toEqual(['644', 0])
    expect(modeOf('usr/local/bin/sluice')).toEqual(['755', 0])
    expect(modeOf('data')).toEqual(['700', 10001])
    expect(modeOf('data/config.toml')).toEqual(['600', 10001])
    expect(existsSync(join(bundle, 'rootfs/data/config.toml'))).toBe(true)
  })
})
