/** The rules for loading that do not depend on the procedure. */
import type { SopMode } from '@sluice/sdk'
import type { SopTrigger } from '../definition/definition.ts'

/** The rules for loading that are the same for all procedures. */
export interface LoadRules {
  readonly defaultMode: SopMode
  readonly nowMs: number
  /** Returns why no trigger may name a path, or undefined when it may. Absent: every path is allowed. */
  readonly pathProblem?: (path: string, hasOwnAuth: boolean) => string | undefined
  /** Returns what a trigger without `role` on a path probably misses, or undefined. */
  readonly roleProblem?: (path: string) => string | undefined
  /** Returns why the secrets that a trigger names cannot verify its requests, or undefined when they can. */
  readonly secretProblem?: (names: readonly string[]) => string | undefined
  /** Returns why no procedure may name an agent, or undefined when it may. Absent: every agent is allowed. */
  readonly agentProblem?: (agent: string) => string | undefined
}

/** Returns what a webhook trigger probably misses: a secret that its `auth` names, or `role` on a path that others send to. */
export const webhookProblem = (
  { auth, role, path }: Extract<SopTrigger, { type: 'webhook' }>,
  { secretProblem, roleProblem }: Pick<LoadRules, 'secretProblem' | 'roleProblem'>,
): string | undefined => (auth ? secretProblem?.(auth.secrets) : role ? undefined : roleProblem?.(path))
