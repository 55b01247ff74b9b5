/** The person at this terminal, as approvals name them (`Approval.by`). */
import { userInfo } from 'node:os'

export function cliUser(): string {
  try {
    return `cli:${userInfo().username}`
  } catch {
    return `cli:${process.getuid?.() ?? 'unknown'}` // a container may run as a user that has no name
  }
}
