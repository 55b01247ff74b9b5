/** Small things that the devices of the guest are made with. */
import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const LOOK_EVERY_MS = 20

/** Writes an attribute of the kernel's; the error names it. */
export async function setAttribute(path: string, value: string): Promise<void> {
  await writeFile(path, value).catch((cause: unknown) => {
    throw new Error(`cannot write ${JSON.stringify(value)} to ${path}`, { cause })
  })
}

/** Looks until there is something, or throws that there was none. */
export async function eventually<Found>(what: string, look: () => Promise<Found | undefined>, timeoutMs = 10_000): Promise<Found> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > endMs) throw new Error(`no ${what} after ${timeoutMs} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}

/** When udev runs: until it has seen to what happened. */
export async function settle(): Promise<void> {
  if (await exists('/run/udev/control')) await run('udevadm', ['settle', '-t', '20'])
}

/** An empty folder over one of the kernel's, so that files can be put where the kernel has none. */
export async function coverFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true }).catch(() => undefined)
  await run('mount', ['-t', 'tmpfs', 'cover', path])
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
