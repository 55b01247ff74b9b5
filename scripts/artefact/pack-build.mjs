// Packs a build: for `npm install -g`, and as an archive for machines without npm. Two packs of the same build are equal.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { create } from 'tar'
import { CHECKSUMS, checksums } from './checksums.mjs'

/** The time of every packed file, the one that npm writes too. */
const MTIME = new Date('1985-10-26T08:15:00.000Z')

/** Returns the names of the files that a build consists of: its folder can also contain files of replaced builds. */
export const filesOf = (folder) => [
  ...readFileSync(join(folder, CHECKSUMS), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.slice(line.indexOf('  ') + 2)),
  CHECKSUMS,
]

/** Writes both archives and their checksums into `target`, which is replaced as a whole. Resolves to the paths of the three files. */
export async function packBuild(folder, target) {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const profile = basename(target)
  mkdirSync(dirname(target), { recursive: true })
  const temporary = mkdtempSync(join(dirname(target), `.${profile}-`))
  try {
    const archives = [
      { name: `sluice-${version}.tgz`, prefix: 'package' },
      { name: `sluice-${version}-${profile}.tar.gz`, prefix: `sluice-${version}-${profile}` },
    ]
    for (const { name, prefix } of archives)
      await create(
        { file: join(temporary, name), cwd: folder, prefix, gzip: { level: 9 }, portable: true, noPax: true, mtime: MTIME },
        filesOf(folder),
      )
    const names = archives.map(({ name }) => name)
    writeFileSync(join(temporary, CHECKSUMS), checksums(temporary, names))
    chmodSync(temporary, 0o755) // A new temporary folder is private to its owner.
    rmSync(target, { recursive: true, force: true })
    renameSync(temporary, target)
    return [...names, CHECKSUMS].map((name) => join(target, name))
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}
