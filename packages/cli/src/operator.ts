/** Who decides at this terminal, for the books. */
import { userInfo } from 'node:os'

/** `cli:<user>`; a user without a name is known by their number. */
export function operator(): string {
  try {
    return `cli:${userInfo().username}`
  } catch {
    return `cli:${process.getuid?.() ?? 'unknown'}`
  }
}
