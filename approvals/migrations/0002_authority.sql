-- The one authority function (approvals/authority.py) where the hot write can call it: these are its
-- words at the time. The hot write knows no limits: whoever has one, and no way without, goes the
-- long way.
CREATE FUNCTION approvals_by_group(p_user uuid, p_tool uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT  FROM tenants_membership member
        JOIN tenants_groupmember belongs ON belongs.membership_id = member.id
        JOIN approvals_grouppermission given ON given.group_id = belongs.group_id
        WHERE member.user_id = p_user AND member.active
            AND (given.tool_id = p_tool OR given.tool_id IS NULL));
END $$;

-- The ways in which a person may decide a tool, each with its limits; {} where one has none.
CREATE FUNCTION approvals_ways(p_user uuid, p_tool uuid) RETURNS text[]
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT CASE WHEN bool_or(way.limits = '[]') THEN '{}'::text[]
        ELSE array_agg(DISTINCT way.limits) END
    FROM (
        SELECT coalesce(
            json_agg(DISTINCT each.limit_text ORDER BY each.limit_text)
                FILTER (WHERE each.limit_text IS NOT NULL), '[]')::text AS limits
        FROM (SELECT NULL::uuid AS through, given.limits FROM approvals_toolpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user AND given.content_object_id = p_tool
        UNION ALL SELECT NULL::uuid AS through, given.limits FROM approvals_tenantpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user
        UNION ALL SELECT given.group_id, given.limits FROM tenants_membership member
        JOIN tenants_groupmember belongs ON belongs.membership_id = member.id
        JOIN approvals_grouppermission given ON given.group_id = belongs.group_id
        WHERE member.user_id = p_user AND member.active
            AND (given.tool_id = p_tool OR given.tool_id IS NULL)) held LEFT JOIN LATERAL unnest(held.limits) each(limit_text) ON true
        GROUP BY held.through) way);
END $$;

-- Why a person may not decide; null where they may.
CREATE FUNCTION approvals_refusal(
    p_user uuid, p_tool uuid, p_agent uuid, p_requester uuid
) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN coalesce(CASE
        WHEN  NOT (EXISTS (
        SELECT FROM tenants_membership member JOIN tenants_user person
            ON person.id = member.user_id AND person.is_active
        WHERE member.user_id = p_user AND member.active AND member.role <> 'viewer')) OR NOT (
            EXISTS (SELECT  FROM approvals_toolpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user AND given.content_object_id = p_tool)
            OR EXISTS (SELECT  FROM approvals_tenantpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user)
            OR approvals_by_group(p_user, p_tool)
        ) THEN 'not-an-approver'
        WHEN p_user = p_requester OR EXISTS (
        SELECT FROM tenants_agent machine
        WHERE machine.id = p_agent AND machine.owner_id = p_user) THEN 'own-request'
    END, CASE
    WHEN cardinality(CASE WHEN (SELECT bool_and(own.limits = '{}') FROM (SELECT given.limits FROM approvals_toolpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user AND given.content_object_id = p_tool UNION ALL SELECT given.limits FROM approvals_tenantpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user) own) THEN '{}'
        ELSE coalesce(approvals_ways(p_user, p_tool), '{}') END) > 0 THEN 'beyond-authority'
END);
    END $$;
