/** Judges scripts: any text for bash, which a sandbox confines, or an operator who allows everything. */
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { isWithin } from '@sluice/kit'
import { AppError, type CallingAgent, isAtLeast, type Policy, policyHeader, type Standing } from '@sluice/sdk'
import { expandHome, forbiddenMention } from './forbidden-path.ts'
import type { Word } from './split-command.ts'

/** Whether commands of this agent may be scripts at this moment. */
export const takesScripts = ({ shell, level }: Policy, confines: boolean): boolean => shell === 'script' && (confines || level === 'full')

/** Whether a principal may give scripts where the agent takes them. */
export const mayGiveScripts = (standing: Standing): boolean => isAtLeast(standing, 'listed')

/** Says why a command had to be plain for an agent whose mode is `script`. */
export const plainReason = (policy: Policy, standing: Standing): string => {
  if (policy.shell !== 'script') return ''
  return mayGiveScripts(standing)
    ? ' Scripts run only while a sandbox works, and none does: sluice doctor says why.'
    : ' Scripts of unknown senders do not run.'
}

/**
 * Throws `forbidden` for a text that names a path of `forbidden_paths`. A confined script cannot open what lies outside of the workspace, so
 * only the forbidden paths in the workspace count then. A path that the script computes is not seen.
 */
export function checkScript(
  script: string,
  { agent, policy, workspace: { root } }: CallingAgent,
  { confines, shown }: { readonly confines: boolean; readonly shown: readonly string[] },
): void {
  if (script.includes('\0')) throw new AppError('invalid_request', 'The command has a NUL character')
  const isInside = (path: string) => {
    const at = resolve(root, expandHome(path, homedir()))
    return at !== root && isWithin(at, root)
  }
  const forbidden = confines ? policy.forbidden_paths.filter(isInside) : policy.forbidden_paths
  const found = forbiddenMention(wordsOf(script), [root], { root, forbidden, shown })
  if (found !== undefined) throw new AppError('forbidden', `'${found}' touches a path in forbidden_paths under ${policyHeader(agent)}`)
}

/** The pieces of a script that can be paths as they are written. */
const wordsOf = (script: string): readonly Word[] =>
  [...new Set(script.split(/[\s;&|<>()`'"$]+/))].map((text) => ({ text, patternAt: text.search(/[*?[{]/), plain: false }))
