// Checks the files of a release like a person who downloads them: every archive, and the script that installs one.
import { spawn } from 'node:child_process'
import { createReadStream, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { extract } from 'tar'
import { CHECKSUMS, checksums } from '../artefact/checksums.mjs'
import { INSTALL_SCRIPT } from './install-script.mjs'
import { refuse, run } from './shell.mjs'

async function inTemporaryFolder(use) {
  const place = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  try {
    return await use(place)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

function checkAnswer(name, version, answer) {
  if (!answer.startsWith(`sluice ${version} (commit `)) refuse(`the program of ${name} answers '${answer}' to --version`)
  console.log(`checked ${name}: ${answer}`)
}

/** Unpacks every archive, compares its files with the checksums in it, and asks its program for the version. */
export async function checkArchives(version, folder) {
  for (const name of globSync('*.{tgz,tar.gz}', { cwd: folder }))
    await inTemporaryFolder(async (place) => {
      await extract({ file: join(folder, name), cwd: place, strip: 1 })
      const sums = readFileSync(join(place, CHECKSUMS), 'utf8')
      const files = sums
        .trim()
        .split('\n')
        .map((line) => line.slice(line.indexOf('  ') + 2))
      if (checksums(place, files) !== sums) refuse(`${name} contains other files than its ${CHECKSUMS} says`)
      checkAnswer(name, version, run(process.execPath, [join(place, 'sluice'), '--version']))
    })
}

/** Serves the files of a folder on loopback. */
async function serve(folder) {
  const server = createServer(({ url = '' }, response) => {
    const file = join(folder, basename(url))
    if (existsSync(file)) createReadStream(file).pipe(response)
    else response.writeHead(404).end()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, address: `http://127.0.0.1:${server.address().port}` }
}

/** Installs the release with its script from a server on loopback, and asks the installed program for the version. */
export async function checkInstallScript(version, folder) {
  const { server, address } = await serve(folder)
  try {
    await inTemporaryFolder(async (place) => {
      const args = [join(folder, INSTALL_SCRIPT), '--minimal', '--prefix', place]
      const child = spawn('sh', args, { env: { ...process.env, SLUICE_DOWNLOADS: address }, stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
      const code = await new Promise((resolve) => child.on('close', resolve))
      if (code !== 0) refuse(`${INSTALL_SCRIPT} ended with ${code}: ${output.trim()}`)
      checkAnswer(INSTALL_SCRIPT, version, run(join(place, 'bin/sluice'), ['--version']))
    })
  } finally {
    server.close()
  }
}
