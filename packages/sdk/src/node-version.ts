/** The version of Node that Sluice needs. */

/** The first version whose SQLite binds numbered parameters; `scripts/bootstrap.mjs`, which runs without this file, repeats it. */
export const NODE_MIN = '24.7'

/** Returns why a version of Node cannot run Sluice, and the cure; undefined if it can. */
export function nodeProblem(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin = 0, minorMin = 0] = NODE_MIN.split('.').map(Number)
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return undefined
  return `this is Node ${version}; Sluice needs Node ${NODE_MIN} or newer`
}
