-- The one way from a key's hash to its principal, across tenants: owned by a role that bypasses
-- row-level security and cannot log in. It also sets the session's tenant, in the same round trip.
CREATE FUNCTION tenants_sign_in(
    p_hash bytea,
    OUT tenant_id uuid, OUT kind text, OUT credential_id uuid, OUT principal_id uuid,
    OUT name text, OUT role text, OUT owner_id uuid
) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    SELECT k.tenant_id, 'agent', k.id, a.id, a.name, NULL, a.owner_id
        INTO tenant_id, kind, credential_id, principal_id, name, role, owner_id
        FROM tenants_agentkey k JOIN tenants_agent a ON a.id = k.agent_id
        WHERE k.hash = p_hash AND k.revoked_at IS NULL AND a.active;
    IF NOT FOUND THEN
        SELECT t.tenant_id, 'user', t.id, u.id, u.username, m.role, NULL
            INTO tenant_id, kind, credential_id, principal_id, name, role, owner_id
            FROM tenants_usertoken t
            JOIN tenants_membership m ON m.id = t.membership_id
            JOIN tenants_user u ON u.id = m.user_id
            WHERE t.hash = p_hash AND t.revoked_at IS NULL AND m.active AND u.is_active;
    END IF;
    IF FOUND THEN
        PERFORM set_config('abeyance.tenant_id', tenant_id::text, false);
        RETURN NEXT;
    END IF;
END $$;
GRANT SELECT ON tenants_agentkey, tenants_agent, tenants_usertoken, tenants_membership, tenants_user
    TO abeyance_keys;
ALTER FUNCTION tenants_sign_in OWNER TO abeyance_keys;
REVOKE ALL ON FUNCTION tenants_sign_in FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_sign_in TO abeyance_app;

-- Where a person may go once they have signed in: the one other read across tenants. Whoever calls
-- it knows the person, and is told no more than that person's own memberships.
CREATE FUNCTION tenants_of_person(
    p_person uuid, OUT tenant_id uuid, OUT slug text, OUT name text, OUT role text
) RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
AS $$
    SELECT t.id, t.slug, t.name, m.role
    FROM tenants_membership m
    JOIN tenants_tenant t ON t.id = m.tenant_id
    JOIN tenants_user u ON u.id = m.user_id
    WHERE m.user_id = p_person AND m.active AND u.is_active
    ORDER BY t.name, t.id
$$;
GRANT SELECT ON tenants_tenant TO abeyance_keys;
ALTER FUNCTION tenants_of_person OWNER TO abeyance_keys;
REVOKE ALL ON FUNCTION tenants_of_person FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_of_person TO abeyance_app;

-- Takes the key's lock without waiting, and only then looks: what was committed before the lock
-- was had is seen. The lock is the transaction's, or the session's where that is asked for.
CREATE FUNCTION tenants_idempotency_begin(
    p_tenant uuid, p_caller text, p_key text, p_lock bigint, p_session boolean,
    OUT held boolean, OUT fingerprint bytea, OUT status smallint, OUT headers text, OUT body bytea
) LANGUAGE plpgsql AS $$
BEGIN
    IF p_session THEN
        held := pg_try_advisory_lock(p_lock);
    ELSE
        held := pg_try_advisory_xact_lock(p_lock);
    END IF;
    IF held THEN
        SELECT a.fingerprint, a.status, a.headers::text, a.body
            INTO fingerprint, status, headers, body
            FROM tenants_idempotentanswer a
            WHERE a.tenant_id = p_tenant AND a.caller = p_caller AND a.key = p_key;
    END IF;
END $$;
