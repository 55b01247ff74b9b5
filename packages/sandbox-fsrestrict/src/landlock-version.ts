/** Finds the kernel's Landlock version with the first launcher that works. */
import { errorText, type RunBare } from '@sluice/sdk'
import { LANDLOCK_VERSION_CALL } from './landlock.ts'
import { type Launcher, launch } from './launchers.ts'

const NEEDS = 'it needs Linux 5.13 or newer'
/** The meaning of the kernel's negative answers. */
const REFUSALS: Readonly<Record<string, string>> = {
  '-1': 'asking for Landlock is not permitted here: a seccomp filter, such as that of a container engine, refuses it',
  '-38': `this kernel has no Landlock: ${NEEDS}, built with CONFIG_SECURITY_LANDLOCK`,
  '-95': "Landlock is switched off: add 'landlock' to the 'lsm=' parameter of the kernel",
}

export type FoundLandlock = { readonly abi: number; readonly launcher: Launcher } | { readonly missing: string }

/** Returns the ABI version with the launcher that read it, or the reason why Landlock or a launcher is missing. */
export async function findLandlock(launchers: readonly Launcher[], signal: AbortSignal, run: RunBare): Promise<FoundLandlock> {
  let missing = 'there is no program that can start commands'
  for (const launcher of launchers) {
    const version = await readVersion(launcher, signal, run)
    if (typeof version === 'number') {
      if (version > 0) return { abi: version, launcher }
      return { missing: REFUSALS[String(version)] ?? `asking for Landlock fails with error ${-version}` }
    }
    missing = `${launcher.name} cannot make system calls: ${version}`
  }
  return { missing }
}

/** Returns the kernel's answer, or the launcher's error as text. */
async function readVersion(launcher: Launcher, signal: AbortSignal, run: RunBare): Promise<number | string> {
  try {
    const { stdout, stderr } = await run(launch(launcher, [LANDLOCK_VERSION_CALL]), signal)
    return /^-?\d+$/.test(stdout) ? Number(stdout) : (stderr.trim().split('\n').at(-1) ?? '')
  } catch (error) {
    return errorText(error)
  }
}
