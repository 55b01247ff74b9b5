/** How many processes and threads our user has: the kernel's limit counts them all, whoever started them. */
import { readdirSync, statSync } from 'node:fs'

/** Beside its threads, such a folder counts itself and its parent. */
const LINKS_BESIDE = 2

export function countOwnTasks(): number {
  const uid = process.getuid?.()
  return readdirSync('/proc').reduce((total, name) => total + (/^\d+$/.test(name) ? threadsOf(name, uid) : 0), 0)
}

function threadsOf(pid: string, uid: number | undefined): number {
  const tasks = statSync(`/proc/${pid}/task`, { throwIfNoEntry: false })
  return tasks && tasks.uid === uid ? tasks.nlink - LINKS_BESIDE : 0
}
