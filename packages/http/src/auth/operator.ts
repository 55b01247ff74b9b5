/** The operator who runs a command. */
import { userInfo } from 'node:os'

/** Returns `cli:<user>`, the name under which approvals and the audit log record this operator. */
export function operator(): string {
  try {
    return `cli:${userInfo().username}`
  } catch {
    // A user of a container may have a number and no name.
    return `cli:${process.getuid?.() ?? 'unknown'}`
  }
}
