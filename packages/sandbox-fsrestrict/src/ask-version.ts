/** Which Landlock the kernel has, asked by the first launcher that can ask. */
import { errorText, type RunBare } from '@sluice/sdk'
import { askVersionCall } from './landlock.ts'
import { type Launcher, launch } from './launchers.ts'

const NEEDS = 'it needs Linux 5.13 or newer'
/** What the kernel's refusals mean. */
const REFUSALS: Readonly<Record<string, string>> = {
  '-1': 'asking for Landlock is not permitted here: a filter of system calls, such as a container engine has, refuses it',
  '-38': `this kernel has no Landlock: ${NEEDS}, built with CONFIG_SECURITY_LANDLOCK`,
  '-95': "Landlock is switched off: add 'landlock' to the 'lsm=' parameter of the kernel",
}

export type Asked = { readonly abi: number; readonly launcher: Launcher } | { readonly why: string }

export async function askVersion(launchers: readonly Launcher[], signal: AbortSignal, run: RunBare): Promise<Asked> {
  let why = 'there is no program to start commands with'
  for (const launcher of launchers) {
    const answer = await ask(launcher, signal, run)
    if (typeof answer === 'number') {
      if (answer > 0) return { abi: answer, launcher }
      return { why: REFUSALS[String(answer)] ?? `asking for Landlock fails with error ${-answer}` }
    }
    why = `${launcher.name} cannot make system calls: ${answer}`
  }
  return { why }
}

async function ask(launcher: Launcher, signal: AbortSignal, run: RunBare): Promise<number | string> {
  try {
    const { stdout, stderr } = await run(launch(launcher, [askVersionCall]), signal)
    return /^-?\d+$/.test(stdout) ? Number(stdout) : (stderr.trim().split('\n').at(-1) ?? '')
  } catch (error) {
    return errorText(error)
  }
}
