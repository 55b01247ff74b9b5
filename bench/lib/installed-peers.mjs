// Installs programs from npm to compare with, into a folder of their own, only when a run asks for it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Installs the packages unless they are there, without their install scripts. Returns their folder. A load program has a home of its own, so that its caller installs them. */
export function installPeers(name, versions) {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const folder = join(cache, 'sluice-bench', `${name}-${Object.values(versions).join('-')}`)
  const done = join(folder, 'installed')
  if (!existsSync(done)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"private": true}')
    const names = Object.entries(versions).map(([one, version]) => `${one}@${version}`)
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...names]
    const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
    if (status !== 0) throw new Error(`npm could not install ${names.join(', ')}`)
    writeFileSync(done, '')
  }
  return folder
}
