/** Helpers of the simulated devices for the guest's files. */
import { execFile } from 'node:child_process'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const LOOK_EVERY_MS = 20

/** Writes a kernel attribute; the error names the attribute. */
export async function setAttribute(path: string, value: string): Promise<void> {
  await writeFile(path, value).catch((cause: unknown) => {
    throw new Error(`cannot write ${JSON.stringify(value)} to ${path}`, { cause })
  })
}

/** Repeats `look` until it returns a value; throws after `timeoutMs`. `what` names the value in the error. */
export async function eventually<Found>(what: string, look: () => Promise<Found | undefined>, timeoutMs = 10_000): Promise<Found> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > endMs) throw new Error(`${what}: not found after ${timeoutMs} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}

/** Waits until udev, if it runs, has handled all events. */
export async function settle(): Promise<void> {
  if (await exists('/run/udev/control')) await run('udevadm', ['settle', '-t', '20'])
}

/** Mounts an empty folder over a kernel folder, so that tests can create files in it. */
export async function coverFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true }).catch(() => undefined)
  await run('mount', ['-t', 'tmpfs', 'cover', path])
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
