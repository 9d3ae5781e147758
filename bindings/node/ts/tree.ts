/**
 * What every live tree answers, with or without a terminal.
 *
 * @module
 */
import { answered, contained } from './errors.js'
import type { NativeTree } from './native.js'
import type {
  SubprocessHolder,
  SubprocessMember,
  SubprocessOutcome,
  SubprocessOwnership,
  SubprocessTree,
  SubprocessUsage,
} from './types.js'

/** A live tree. */
export abstract class Tree<Native extends NativeTree> implements SubprocessTree {
  /** Settles when the tree is gone, and keeps nothing alive. */
  readonly gone: Promise<void>

  protected constructor(protected readonly native: Native) {
    this.gone = contained(native.treeExited(false))
  }

  /** Resolves with how the target ended. */
  abstract readonly done: Promise<SubprocessOutcome>

  ownership(): Promise<SubprocessOwnership> {
    return answered(() => this.native.ownership())
  }

  usage(): Promise<SubprocessUsage> {
    return answered(() => this.native.usage())
  }

  members(): Promise<SubprocessMember[]> {
    return answered(() => this.native.members())
  }

  holders(): Promise<SubprocessHolder[]> {
    return answered(() => this.native.holders() as Promise<SubprocessHolder[]>)
  }

  survivors(): Promise<SubprocessMember[]> {
    return answered(() => this.native.survivors())
  }

  unref(): this {
    this.setReferenced(false)
    return this
  }

  ref(): this {
    this.setReferenced(true)
    return this
  }

  terminateForHostExit(): void {
    try {
      this.native.kill()
    } catch {
      // The host exits now, whatever becomes of this tree.
    }
  }

  /** Ends the tree and resolves when it is gone and its `done` has settled. Rejects where it does not go. */
  abstract end(): Promise<void>

  /** Gives up what this side still has of the tree: its runtime is disposed of. */
  abstract release(): void

  protected setReferenced(referenced: boolean): void {
    this.native.setReferenced(referenced)
  }
}
