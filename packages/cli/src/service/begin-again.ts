/** Begins this program again as the same process, so that its parent, its terminal and its service manager keep it. */

/** False where the system cannot replace a program, and for a child whose channel to its parent a new program would lose. */
export const canBeginAgain = (): boolean => process.execve !== undefined && process.send === undefined

/** Begins the program again with further options of Node. Nothing that is open stays open, except for the standard streams. */
export function beginAgain(options: readonly string[] = []): void {
  const { execArgv, execPath } = process
  process.execve?.(execPath, [execPath, ...execArgv, ...options, ...process.argv.slice(1)], process.env)
}
